#include "shm/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <string_view>

namespace pullman::shm {
namespace {

// What /proc/ID/stat says (proc(5)).
struct Facts {
  char state = '?';
  std::uint64_t threads = 0;
  std::uint64_t started = 0;

  // The first thread of a process may end before the others: it is a zombie then, and the process
  // runs.
  bool ended() const { return (state == 'Z' || state == 'X') && threads <= 1; }
};

// Allocates nothing. Returns nothing if the file cannot be read.
std::optional<Facts> facts_of(pid_t id) {
  std::array<char, 32> path{};
  fmt::format_to_n(path.data(), path.size() - 1, "/proc/{}/stat", id);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text;
  const ssize_t got = read(file, text.data(), text.size());
  close(file);
  if (got <= 0) return std::nullopt;

  // The name of the program, which stands in parentheses, may itself have any character.
  const std::string_view line(text.data(), static_cast<std::size_t>(got));
  constexpr int kState = 3;
  constexpr int kThreads = 20;
  constexpr int kStarted = 22;
  Facts facts;
  std::size_t at = line.rfind(')');
  for (int field = kState; field <= kStarted; ++field) {
    if (at < line.size()) at = line.find_first_not_of(' ', at + 1);
    if (at >= line.size()) return std::nullopt;
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (field == kState) facts.state = line[at];
    if (field == kThreads) std::from_chars(&line[at], line.data() + end, facts.threads);
    if (field == kStarted) std::from_chars(&line[at], line.data() + end, facts.started);
    at = end;
  }
  return facts;
}

}  // namespace

ProcessName this_process() {
  return process_of(getpid());
}

std::uint64_t process_namespace() {
  struct stat facts {};
  return stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

ProcessName process_of(pid_t id) {
  const auto facts = facts_of(id);
  return {.id = id, .started = facts && !facts->ended() ? facts->started : 0};
}

bool has_ended(const ProcessName& name) {
  if (kill(name.id, 0) != 0 && errno == ESRCH) return true;
  const auto facts = facts_of(name.id);
  return facts && name.started != 0 && (facts->ended() || facts->started != name.started);
}

}  // namespace pullman::shm
