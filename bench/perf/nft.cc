#include "nft.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>

#include "options.h"

namespace perf {

Nft::Nft(bool only_check) {
  if (pipe2(pipe_, O_CLOEXEC) != 0) {
    throw Failure(fmt::format("cannot run nft: {}", strerror(errno)));
  }
  std::string words[] = {"nft", only_check ? "-cf" : "-f", "-"};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_[0], STDIN_FILENO);
  const int error = posix_spawnp(&child_, "nft", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    close(pipe_[0]);
    close(pipe_[1]);
    throw Failure(fmt::format("cannot run nft: {}", strerror(error)));
  }
}

Nft::~Nft() {
  finish();
}

// Lets it do what it was told.
int Nft::finish() {
  if (child_ == 0) return -1;
  close(pipe_[1]);
  int status = 0;
  while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
  }
  close(pipe_[0]);
  child_ = 0;
  return status;
}

void Nft::run(const std::string& rules) {
  // Rules are far shorter than what a pipe holds.
  const bool whole = write(pipe_[1], rules.data(), rules.size()) == std::ssize(rules);
  if (finish() != 0 || !whole) throw Failure("nft refused a cut");
}

}  // namespace perf
