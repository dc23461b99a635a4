// Half a round trip of bare datagrams, and with one thing after the other that a reliable protocol
// cannot do without. The steps take turns; each packet says which it is of, and its answer is of
// the same.
#include "latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "socket.h"

namespace bare {
namespace {

using Clock = std::chrono::steady_clock;
using Micro = std::chrono::duration<double, std::micro>;

constexpr std::uint16_t kPort = 7300;
constexpr std::size_t kHead = 28;
constexpr std::size_t kMaxBytes = 1400;
constexpr std::size_t kLine = 64;
constexpr std::uint8_t kEnd = 0xff;   // in place of a step
constexpr unsigned kSecondEvery = 4;  // turns
constexpr unsigned kPollsBeforeYield = 128;
constexpr auto kPatience = std::chrono::seconds(5);

struct Step {
  const char* what;
  bool head = false;
  bool second_socket = false;
  bool clock = false;
  bool window = false;
  std::size_t lines = 0;
};
constexpr std::array<Step, 7> kSteps = {{
    {.what = "bare"},
    {.what = "a head of 28 bytes", .head = true},
    {.what = "a second socket, asked every 4 turns", .head = true, .second_socket = true},
    {.what = "a clock, read every turn", .head = true, .second_socket = true, .clock = true},
    {"numbers, a window, ACKs, a copy", true, true, true, true},
    {"64 lines of memory", true, true, true, true, 64},
    {"256 lines of memory", true, true, true, true, 256},
}};

class End {
 public:
  explicit End(const Latency& options)
      : main_(options.own, kPort), second_(options.own, kPort + 1), bytes_(options.bytes) {
    if (bytes_ < 16 || bytes_ > kMaxBytes) throw std::runtime_error("16 to 1400 bytes");
    main_.connect(options.peer, kPort);
  }

  void send(std::uint8_t step) {
    auto* packet = out_.data();
    if (kSteps[step].window) {
      packet = window_[number_ % window_.size()].data();
      std::memcpy(packet, out_.data(), bytes_);
      const std::array<std::uint32_t, 2> numbers{number_++, expected_};
      std::memcpy(packet + 4, numbers.data(), sizeof numbers);
    }
    packet[0] = step;
    ::send(main_.fd(), packet, bytes_ + (kSteps[step].head ? kHead : 0), 0);
  }
  void say_end() {
    out_[0] = kEnd;
    ::send(main_.fd(), out_.data(), bytes_, 0);
  }

  // One turn; the step of what has come, if anything has.
  bool look(std::uint8_t& step) {
    if (kSteps[step].clock) now_ = Clock::now();
    if (::recv(main_.fd(), in_.data(), in_.size(), 0) <= 0) {
      if (kSteps[step].second_socket && ++turns_ % kSecondEvery == 0) {
        (void)::recv(second_.fd(), in_.data(), in_.size(), 0);
      }
      return false;
    }
    step = in_[0];
    if (step >= kSteps.size()) return true;
    if (kSteps[step].window) take_numbers();
    for (std::size_t i = 0; i < kSteps[step].lines; ++i) {
      ++memory_[i * 37 * kLine % memory_.size()];
    }
    return true;
  }

 private:
  void take_numbers() {
    std::array<std::uint32_t, 2> numbers;
    std::memcpy(numbers.data(), in_.data() + 4, sizeof numbers);
    expected_ = numbers[0] + 1;
    while (acked_ != numbers[1] && acked_ != number_) window_[acked_++ % window_.size()][1] = 1;
    std::memcpy(message_.data(), in_.data() + kHead, bytes_);
  }

  Socket main_;
  Socket second_;
  std::size_t bytes_;
  unsigned turns_ = 0;
  Clock::time_point now_;
  std::uint32_t number_ = 0;
  std::uint32_t expected_ = 0;
  std::uint32_t acked_ = 0;
  std::array<std::uint8_t, 2048> out_{}, message_{};
  std::array<std::uint8_t, 65536> in_{}, memory_{};
  // As few as may be under way: those of a window that goes round are never in the cache.
  std::array<std::array<std::uint8_t, 2048>, 4> window_{};
};

double part_of(std::vector<double>& sorted, double part) {
  std::sort(sorted.begin(), sorted.end());
  return sorted.at(static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1)));
}

// False if the answer was lost.
bool round(End& end, std::uint8_t step) {
  end.send(step);
  std::uint8_t of = step;
  for (unsigned polls = 1; !end.look(of); ++polls) {
    if (polls % kPollsBeforeYield == 0) std::this_thread::yield();
    if (polls == 1'000'000) return false;
  }
  return of == step;
}

}  // namespace

void answer(const Latency& options) {
  End end(options);
  fmt::print("ready\n");
  std::fflush(stdout);
  std::uint8_t step = 0;
  Clock::time_point heard = Clock::now();
  for (unsigned polls = 1;; ++polls) {
    if (end.look(step)) {
      if (step >= kSteps.size()) return;
      end.send(step);
      polls = 0;
    } else if (polls % kPollsBeforeYield == 0) {
      std::this_thread::yield();
      if (polls % 8192 != 0) continue;
      const Clock::time_point now = Clock::now();
      if (polls == 8192) heard = now;
      if (now - heard > kPatience) throw std::runtime_error("nobody asks any more");
    }
  }
}

void ask(const Latency& options) {
  End end(options);
  std::array<std::vector<double>, kSteps.size()> medians, tails;
  for (unsigned n = 0; n <= options.rounds; ++n) {
    for (std::uint8_t step = 0; step < kSteps.size(); ++step) {
      std::vector<double> taken;
      const Clock::time_point until = Clock::now() + std::chrono::milliseconds(50);
      for (Clock::time_point begin = Clock::now(); begin < until; begin = Clock::now()) {
        if (round(end, step)) taken.push_back(Micro(Clock::now() - begin).count() / 2);
      }
      if (taken.empty()) throw std::runtime_error("nobody answers");
      if (n == 0) continue;  // to become warm
      medians[step].push_back(part_of(taken, 0.5));
      tails[step].push_back(part_of(taken, 0.99));
    }
  }
  end.say_end();
  const double bare = part_of(medians[0], 0.5);
  for (std::size_t step = 0; step < kSteps.size(); ++step) {
    const double median = part_of(medians[step], 0.5);
    fmt::print("{:<40} {:.3f} us, {:.3f}; p99 {:.3f}\n",
               (step > 1 ? "and " : "") + std::string(kSteps[step].what), median, median / bare,
               part_of(tails[step], 0.5) / part_of(tails[0], 0.5));
  }
}

}  // namespace bare
