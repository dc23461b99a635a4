// Windows of 64 messages of 8 bytes, packed as closely as packets allow, each copied once at either
// end: in one call, or the first in one of its own before the others are there. The steps take
// turns; each packet says which it is of.
#include "window.h"

#include <fmt/format.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "socket.h"

namespace bare {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 7320;
constexpr std::size_t kHead = 28;  // of a packet; its first byte says the step
constexpr std::size_t kMessageHead = 16;
constexpr std::size_t kMessage = 8;
constexpr std::size_t kEach = kMessageHead + kMessage;
constexpr std::size_t kMessages = 64;
constexpr std::size_t kInPacket = 58;
constexpr std::size_t kPacket = kHead + kInPacket * kEach;
constexpr std::uint8_t kEnd = 0xff;
constexpr unsigned kPollsBeforeYield = 128;
constexpr unsigned kPatience = 1'000'000;  // polls

struct Step {
  const char* what;
  bool first_at_once;
};
constexpr std::array<Step, 2> kSteps = {{
    {.what = "64 messages in one call", .first_at_once = false},
    {.what = "the first at once, 63 in one call", .first_at_once = true},
}};

class End {
 public:
  explicit End(const Window& options) : socket_(options.own, kPort) {
    socket_.connect(options.peer, kPort);
    socket_.set(IPPROTO_UDP, UDP_SEGMENT, kPacket);
    socket_.set(IPPROTO_UDP, UDP_GRO, 1);
  }

  void send_window(std::uint8_t step) {
    std::size_t sent = 0;
    if (kSteps[step].first_at_once) sent = send(step, 0, 1);
    send(step, sent, kMessages);
  }
  void send_word(std::uint8_t step) {
    out_[0] = step;
    ::send(socket_.fd(), out_.data(), kHead + kEach, 0);
  }
  // The first byte of what has come; messages are where they belong, and counted.
  bool look(std::uint8_t& step) {
    const ssize_t got = ::recv(socket_.fd(), in_.data(), in_.size(), 0);
    if (got <= 0) return false;
    step = in_[0];
    for (std::size_t at = 0; at < static_cast<std::size_t>(got); at += kPacket) take(at, got);
    return true;
  }
  // Whether a whole window has come since it was asked last.
  bool full() {
    if (come_ < kMessages) return false;
    come_ = 0;
    return true;
  }

 private:
  std::size_t send(std::uint8_t step, std::size_t from, std::size_t to) {
    std::uint8_t* out = out_.data();
    for (std::size_t i = from; i < to; ++i) {
      if ((i - from) % kInPacket == 0) {
        *out = step;
        out += kHead;
      }
      std::memcpy(out + kMessageHead, messages_[i].data(), kMessage);
      out += kEach;
    }
    ::send(socket_.fd(), out_.data(), static_cast<std::size_t>(out - out_.data()), 0);
    return to;
  }
  void take(std::size_t at, ssize_t got) {
    const std::size_t end = std::min(static_cast<std::size_t>(got), at + kPacket);
    for (at += kHead; at + kEach <= end; at += kEach) {
      std::memcpy(messages_[come_++ % kMessages].data(), in_.data() + at + kMessageHead, kMessage);
    }
  }

  Socket socket_;
  std::size_t come_ = 0;
  std::array<std::array<std::uint8_t, kMessage>, kMessages> messages_{};
  std::array<std::uint8_t, 4096> out_{};
  std::array<std::uint8_t, 65536> in_{};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

}  // namespace

void collect(const Window& options) {
  End end(options);
  fmt::print("ready\n");
  std::fflush(stdout);
  std::uint8_t step = 0;
  for (unsigned polls = 1; polls < 100 * kPatience; ++polls) {
    if (end.look(step)) {
      if (step == kEnd) return;
      if (end.full()) end.send_word(step);
      polls = 0;
    } else if (polls % kPollsBeforeYield == 0) {
      std::this_thread::yield();
    }
  }
  throw std::runtime_error("nobody sends any more");
}

void fill(const Window& options) {
  End end(options);
  std::array<std::vector<double>, kSteps.size()> rates;
  for (unsigned n = 0; n <= options.rounds; ++n) {
    for (std::uint8_t step = 0; step < kSteps.size(); ++step) {
      unsigned windows = 0;
      const Clock::time_point begin = Clock::now();
      for (; Clock::now() - begin < std::chrono::milliseconds(50); ++windows) {
        end.send_window(step);
        std::uint8_t word = 0;
        for (unsigned polls = 1; !end.look(word); ++polls) {
          if (polls % kPollsBeforeYield == 0) std::this_thread::yield();
          if (polls == kPatience) throw std::runtime_error("no word came back");
        }
      }
      const std::chrono::duration<double, std::micro> taken = Clock::now() - begin;
      if (n > 0) rates[step].push_back(windows * kMessages / taken.count());  // first: to warm up
    }
  }
  end.send_word(kEnd);
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    fmt::print("{:<40} {:.2f} million a second\n", kSteps[step].what, median(rates[step]));
  }
}

}  // namespace bare
