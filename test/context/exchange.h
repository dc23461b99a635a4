// Two contexts of this process on loopback that exchange messages, each in one turn, and the checks
// that must hold whatever fails.
#pragma once

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pullman/pullman.h"

namespace pullman::test {

inline constexpr std::array<std::size_t, 6> kSizes = {0, 8, 700, 3000, 20'000, 200'000};
inline constexpr auto kLongest = std::chrono::seconds(30);

inline Config config_of(const std::string& driver) {
  Config config;
  config.driver = driver;
  config.nics = {"lo"};
  config.shared_memory = false;
  config.max_peers = 4;
  config.peer_timeout = std::chrono::seconds(5);
  config.sleep_after = std::chrono::microseconds(50);  // leaves the processor to others
  config.packet_bytes = 1472;                          // long messages would be slow to make
  return config;
}

inline std::vector<std::byte> content(Tag tag, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + tag * 31);
  return bytes;
}

struct Message {
  Message(Tag of, std::size_t size) : tag(of), bytes(content(of, size)), buffer(size) {}
  bool done() const { return sent.done() && received.done(); }
  bool good() const {
    return sent.status() == Status::kOk && received.status() == Status::kOk &&
           received.length() == bytes.size() && buffer == bytes;
  }

  Tag tag;
  std::vector<std::byte> bytes;
  std::vector<std::byte> buffer;
  Request sent;
  Request received;
};

// Two contexts, each with messages for the other.
class Exchange {
 public:
  explicit Exchange(const Config& config) : one_(config), other_(config) {}

  // Returns whether every message arrived once and intact, both ends noticed, and no sleep was too
  // long.
  bool works() {
    const PeerId there = one_.connect(other_.address());
    post_receives(other_, to_other_);
    post_sends(one_, there, to_other_);
    if (!turn_until([&] { return (back_ = other_.accept()).has_value(); })) return false;
    post_receives(one_, to_one_);
    post_sends(other_, *back_, to_one_);
    if (!turn_until([&] { return all(to_one_) && all(to_other_); })) return false;
    return good(to_one_) && good(to_other_) && nothing_more() && slept_through_ == 0;
  }

  // Returns whether every request ends, with any status.
  bool ends() {
    const PeerId there = one_.connect(other_.address());
    post_sends(one_, there, to_other_);
    return turn_until([&] {
      for (const Message& message : to_other_) {
        if (!message.sent.done()) return false;
      }
      return true;
    });
  }

  // Closes both at once, as each waits for the other's BYE.
  bool closes() {
    Status one = Status::kPending;
    std::thread beside([&] { one = one_.close(std::chrono::seconds(2)); });
    const Status other = other_.close(std::chrono::seconds(2));
    beside.join();
    return one != Status::kPending && other != Status::kPending;
  }
  std::string dump() const { return one_.dump() + other_.dump(); }
  Stats stats() const { return one_.stats(); }

 private:
  using Messages = std::deque<Message>;

  static Messages make() {
    Messages messages;
    for (Tag tag = 0; tag < 3 * kSizes.size(); ++tag) {
      messages.emplace_back(tag, kSizes[tag % kSizes.size()]);
    }
    return messages;
  }
  static void post_receives(Context& context, Messages& messages) {
    for (Message& message : messages) {
      context.receive(kAnyPeer, message.tag, 0, message.buffer, message.received);
    }
  }
  static void post_sends(Context& context, PeerId to, Messages& messages) {
    for (Message& message : messages) context.send(to, message.tag, message.bytes, message.sent);
  }
  static bool all(const Messages& messages) {
    return std::all_of(messages.begin(), messages.end(),
                       [](const Message& message) { return message.done(); });
  }
  static bool good(const Messages& messages) {
    return std::all_of(messages.begin(), messages.end(),
                       [](const Message& message) { return message.good(); });
  }
  // Checks that no message is left over: one that was delivered twice would be unexpected.
  bool nothing_more() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
    while (std::chrono::steady_clock::now() < until) turn();
    return !one_.next_unexpected() && !other_.next_unexpected() &&
           one_.stats().messages_received == to_one_.size() &&
           other_.stats().messages_received == to_other_.size();
  }
  bool turn() { return one_.progress() + other_.progress() != 0; }

  template <typename Condition>
  bool turn_until(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + kLongest;
    int idle = 0;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      idle = turn() ? 0 : idle + 1;
      if (idle > 50) sleep();
    }
    return true;
  }

  // Sleeps as a program with its own loop does. With messages under way there is always a timer.
  void sleep() {
    if (!one_.prepare_wait() || !other_.prepare_wait()) return;
    std::array<pollfd, 2> what = {pollfd{one_.wait_fd(), POLLIN, 0},
                                  pollfd{other_.wait_fd(), POLLIN, 0}};
    if (what[0].fd < 0 || what[1].fd < 0) return;
    if (::poll(what.data(), what.size(), 3000) == 0) ++slept_through_;
  }

  Context one_;
  Context other_;
  Messages to_one_ = make();
  Messages to_other_ = make();
  std::optional<PeerId> back_;
  int slept_through_ = 0;
};

}  // namespace pullman::test
