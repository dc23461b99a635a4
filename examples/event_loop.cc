// People talk: what one types all others read. A loop of the program's own (epoll) waits for the
// keyboard, for packets and for Ctrl-C alike, and sleeps while nothing comes.
//
//   event_loop                  waits for the others, says where it is
//   event_loop 10.0.0.1:7100    goes there
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "pullman/pullman.h"

namespace {

constexpr pullman::Tag kLine = 1;

class Talk {
 public:
  Talk() { context_.receive(pullman::kAnyPeer, kLine, 0, buffer_, incoming_); }

  // Ends the request, so that it may be destroyed.
  ~Talk() { context_.close(); }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  pullman::Context& context() { return context_; }
  void join(const std::string& address) { others_.push_back(context_.connect(address)); }

  // Those who have come since. Theirs is what is typed from now on.
  void welcome() {
    while (const auto peer = context_.accept()) others_.push_back(*peer);
  }

  void say(std::span<const std::byte> line) {
    for (const pullman::PeerId other : others_) tell(other, line);
  }

 private:
  // A line is copied, so that its memory is free again at once; if it cannot be, it is waited for.
  void tell(pullman::PeerId other, std::span<const std::byte> line) {
    pullman::Request sent;
    if (context_.send(other, kLine, line, sent) == pullman::Status::kPending) context_.wait(sent);
    if (sent.status() != pullman::Status::kOk) {
      std::fprintf(stderr, "%s\n", pullman::to_sentence(sent.status()));
    }
  }

  void show(pullman::CallbackRequest& line) {
    if (line.status() == pullman::Status::kClosed) return;
    std::fwrite(buffer_.data(), 1, line.length(), stdout);
    std::fflush(stdout);
    context_.receive(pullman::kAnyPeer, kLine, 0, buffer_, line);
  }

  pullman::Context context_;  // options: the PULLMAN_* environment variables
  std::array<std::byte, 1000> buffer_{};
  std::vector<pullman::PeerId> others_;
  pullman::CallbackRequest incoming_{context_,
                                     [this](pullman::CallbackRequest& line) { show(line); }};
};

void watch(int epoll, int descriptor) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
  }
}

// Becomes readable at Ctrl-C.
int watch_interrupt() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  sigprocmask(SIG_BLOCK, &interrupt, nullptr);
  return signalfd(-1, &interrupt, SFD_CLOEXEC);
}

void run(Talk& talk) {
  const int wait_fd = talk.context().wait_fd();
  if (wait_fd < 0) throw std::runtime_error("this NIC cannot wake a program: poll it");
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int interrupted = watch_interrupt();
  for (const int descriptor : {STDIN_FILENO, interrupted, wait_fd}) watch(epoll, descriptor);
  for (;;) {
    while (!talk.context().prepare_wait()) talk.welcome();  // calls back, too
    epoll_event event{};
    if (epoll_wait(epoll, &event, 1, -1) <= 0) continue;
    if (event.data.fd == interrupted) return;
    if (event.data.fd != STDIN_FILENO) continue;
    std::array<std::byte, 1000> line;
    const ssize_t bytes = read(STDIN_FILENO, line.data(), line.size());
    if (bytes <= 0) return;
    talk.say(std::span(line).first(static_cast<std::size_t>(bytes)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Talk talk;
    if (argc > 1) {
      talk.join(argv[1]);
    } else {
      std::printf("on the other machines: event_loop %s\n", talk.context().address().c_str());
      std::fflush(stdout);
    }
    run(talk);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "event_loop: %s\n", error.what());
    return 1;
  }
}
