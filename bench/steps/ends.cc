#include "ends.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <vector>

#include "pullman/pullman.h"

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kSlower = 2000;

std::int64_t slow_from;  // 0: the clock goes as it does

constexpr pullman::Tag kPing = 1;
constexpr pullman::Tag kPong = 2;

class End {
 public:
  explicit End(std::size_t bytes) : bytes_(bytes), received_(bytes) {}

  void receive(pullman::PeerId from, pullman::Tag tag) {
    context.receive(from, tag, 0, received_, receiving);
  }
  void send(pullman::PeerId to, pullman::Tag tag) { context.send(to, tag, bytes_, sending_); }
  void wait(pullman::Request& request) {
    if (context.wait(request) != pullman::Status::kOk) std::raise(SIGABRT);
  }
  void wait_sent() { wait(sending_); }
  // Goes on acknowledging until there is one; false at the end of it.
  bool waits_for_byte(int from) {
    pollfd readable{.fd = from, .events = POLLIN, .revents = 0};
    while (::poll(&readable, 1, 0) == 0) context.progress();
    char byte;
    return ::read(from, &byte, 1) == 1;
  }

  pullman::Context context;
  pullman::Request receiving;

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::byte> received_;
  pullman::Request sending_;
};

void slow_the_clock() {
  timespec time;
  ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  slow_from = time.tv_sec * kSecond + time.tv_nsec;
}

}  // namespace

// Stands before the C library's, for the libraries of this program, too. A step takes microseconds,
// and what is watched must not think that so much time has passed.
extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (slow_from != 0 && clock == CLOCK_MONOTONIC) {
    const std::int64_t ns =
        slow_from + (time->tv_sec * kSecond + time->tv_nsec - slow_from) / kSlower;
    *time = {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
  }
  return result;
}

namespace steps {

void Answer::run() const {
  End end(bytes);
  const std::string address = end.context.address() + '\n';
  if (::write(address_out, address.data(), address.size()) < 0) return;
  end.receive(pullman::kAnyPeer, kPing);
  for (int round = 0; round < kUnwatched + rounds; ++round) {
    if (round == kUnwatched) {
      slow_the_clock();
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      std::raise(SIGSTOP);
    }
    end.wait(end.receiving);
    end.send(end.receiving.source(), kPong);
    end.receive(pullman::kAnyPeer, kPing);
    end.wait_sent();
  }
}

void Ask::run() const {
  End end(bytes);
  const pullman::PeerId peer = end.context.connect(address);
  for (int round = 0; round < kUnwatched + rounds; ++round) {
    if (round == kUnwatched) slow_the_clock();
    if (round >= kUnwatched && !end.waits_for_byte(go)) return;
    end.receive(peer, kPong);
    end.send(peer, kPing);
    end.wait_sent();
    end.wait(end.receiving);
  }
}

}  // namespace steps
