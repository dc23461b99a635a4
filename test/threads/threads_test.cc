// Config::threads = many: two contexts on the loopback interface, each called by many threads. The
// thread sanitizer shows that nothing is accessed by two at a time.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "pullman/pullman.h"

namespace pullman {
namespace {

Config config(bool shared_memory = false, bool with_thread = false) {
  Config config;
  if (with_thread) config.progress = Config::Progress::kThread;
  config.driver = "udp";
  config.nics = {"lo"};
  config.shared_memory = shared_memory;
  config.threads = Config::Threads::kMany;
  config.max_peers = 8;
  return config;
}

struct Pair {
  explicit Pair(bool shared_memory = false, bool with_thread = false)
      : one(config(shared_memory, with_thread)),
        other(config(shared_memory, with_thread)),
        there(one.connect(other.address())) {
    while (!back) {
      one.progress();
      other.progress();
      back = other.accept();
    }
  }
  Context one;
  Context other;
  PeerId there;
  std::optional<PeerId> back;
};

constexpr int kThreads = 4;
constexpr std::uint64_t kRounds = 300;

// Lets each thread make progress until all have finished: what it sent last was copied, and leaves,
// or is retransmitted, only during calls of its context.
class Done {
 public:
  explicit Done(int threads) : busy_(threads) {}
  void stay(Context& context) {
    --busy_;
    while (busy_ != 0) context.progress();
  }

 private:
  std::atomic<int> busy_;
};

// Returns each message to its sender; `begins`: after sending the first one.
void play(Context& context, PeerId peer, Tag tag, bool begins, std::atomic<int>& wrong) {
  std::vector<std::byte> buffer(2000);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    Request sent;
    Request received;
    const std::size_t size = 8 + (tag * 131 + round * 37) % 1900;
    std::vector<std::byte> out(size, static_cast<std::byte>(round + tag));
    if (begins) context.send(peer, tag, out, sent);
    context.receive(peer, tag, 0, buffer, received);
    if (context.wait(received) != Status::kOk || received.length() != size ||
        buffer[size - 1] != static_cast<std::byte>(round + tag)) {
      ++wrong;
    }
    if (!begins) context.send(peer, tag, out, sent);
    if (context.wait(sent) != Status::kOk) ++wrong;
  }
}

}  // namespace

TEST_CASE("many threads play ping-pong through two contexts, each on its own tag") {
  const bool shared_memory = GENERATE(false, true);
  const bool with_thread = GENERATE(false, true);
  Pair pair(shared_memory, with_thread);
  std::atomic<int> wrong = 0;
  Done done(2 * kThreads);
  std::vector<std::thread> threads;

  for (Tag tag = 0; tag < kThreads; ++tag) {
    threads.emplace_back([&, tag] {
      play(pair.one, pair.there, tag, true, wrong);
      done.stay(pair.one);
    });
    threads.emplace_back([&, tag] {
      play(pair.other, *pair.back, tag, false, wrong);
      done.stay(pair.other);
    });
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(wrong == 0);
}

TEST_CASE("atomics of many threads are each done exactly once") {
  Pair pair(GENERATE(false, true));
  std::uint64_t word = 0;
  std::atomic<int> wrong = 0;
  std::atomic<int> left = kThreads;
  REQUIRE(pair.other.register_region(7, std::as_writable_bytes(std::span(&word, 1)),
                                     Access::kReadWrite) == Status::kOk);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);

  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const std::uint64_t one = 1;
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        Request request;
        Atomic add;
        add.operand = std::as_bytes(std::span(&one, 1));
        pair.one.atomic(pair.there, {7, 0}, add, request);
        if (pair.one.wait(request) != Status::kOk) ++wrong;
      }
      --left;
    });
  }
  while (left != 0) pair.other.progress();
  for (std::thread& thread : threads) thread.join();

  CHECK(wrong == 0);
  CHECK(word == kThreads * kRounds);
}

TEST_CASE("threads that send one message to many peers deliver it whole to each") {
  Context one(config());
  std::vector<std::unique_ptr<Context>> others;
  std::vector<PeerId> peers;
  for (int i = 0; i < 3; ++i) {
    others.push_back(std::make_unique<Context>(config()));
    peers.push_back(one.connect(others.back()->address()));
  }
  std::atomic<int> wrong = 0;
  std::atomic<int> left = kThreads;
  constexpr int kMessages = 10;
  const auto size_of = [](Tag tag, int i) { return i % 2 == 0 ? 100 + tag : 300'000 + tag; };
  std::vector<std::thread> threads;

  for (Tag tag = 0; tag < kThreads; ++tag) {
    threads.emplace_back([&, tag] {
      MultiRequest request;
      for (int i = 0; i < kMessages; ++i) {
        const auto message =
            std::make_shared<const std::vector<std::byte>>(size_of(tag, i), std::byte(tag + 1));
        one.send(peers, tag, message, {}, request);
        if (one.wait(request) != Status::kOk || message.use_count() != 1) ++wrong;
      }
      --left;
      while (left != 0) one.progress();
    });
  }
  std::atomic<int> receiving = 3;
  for (auto& other : others) {
    threads.emplace_back([&, &context = *other] {
      std::vector<std::byte> buffer(400'000);
      for (int i = 0; i < kMessages; ++i) {
        for (Tag tag = 0; tag < kThreads; ++tag) {
          Request received;
          context.receive(kAnyPeer, tag, 0, buffer, received);
          if (context.wait(received) != Status::kOk || received.length() != size_of(tag, i) ||
              buffer[received.length() - 1] != std::byte(tag + 1)) {
            ++wrong;
          }
        }
      }
      --receiving;
      while (receiving != 0 || left != 0) context.progress();
    });
  }
  for (std::thread& thread : threads) thread.join();

  CHECK(wrong == 0);
}

TEST_CASE("shared buffers posted one after the other take messages of many threads, each once") {
  Pair pair;
  std::atomic<int> wrong = 0;
  Done done(kThreads + 1);
  std::vector<std::thread> threads;
  threads.reserve(kThreads + 1);

  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        Request sent;
        const std::vector<std::byte> out(1 + round % 700, std::byte(i));
        pair.one.send(pair.there, 9, out, sent);
        if (pair.one.wait(sent) != Status::kOk) ++wrong;
      }
      done.stay(pair.one);
    });
  }
  std::array<std::uint64_t, kThreads> came{};
  threads.emplace_back([&] {
    std::vector<std::byte> buffer(20'000);
    MultiReceive many(100, 700);
    std::uint64_t left = kThreads * kRounds;
    while (left > 0) {
      if (many.idle()) pair.other.receive(kAnyPeer, 9, 0, buffer, {}, many);
      pair.other.wait(many);
      for (; const auto message = many.take(); --left) {
        const auto sender = static_cast<std::size_t>(message->bytes.front());
        const bool whole = std::all_of(message->bytes.begin(), message->bytes.end(),
                                       [&](std::byte one) { return one == std::byte(sender); });
        const std::uint64_t round = came.at(sender)++;
        if (!whole || message->bytes.size() != 1 + round % 700) ++wrong;
      }
    }
    pair.other.cancel(many);
    if (!many.done()) ++wrong;
    done.stay(pair.other);
  });
  for (std::thread& thread : threads) thread.join();

  CHECK(wrong == 0);
}

TEST_CASE("a wait for a shared buffer ends after its timeout, and by cancel()") {
  Pair pair;
  std::vector<std::byte> buffer(10);
  MultiReceive many(2);
  CHECK(many.idle());
  CHECK(pair.other.receive(kAnyPeer, 1, 0, buffer, {}, many) == Status::kPending);
  CHECK(pair.other.wait(many, std::chrono::milliseconds(1)) == Status::kTimedOut);
  CHECK_FALSE(pair.other.test(many));
  CHECK(pair.other.cancel(many));
  CHECK(pair.other.test(many));
  CHECK(pair.other.wait(many) == Status::kCancelled);
}

TEST_CASE("of a send to many peers the part to an unknown peer fails alone") {
  Pair pair;
  const PeerId peers[] = {pair.there, PeerId{}, pair.there};
  const auto message = std::make_shared<const std::vector<std::byte>>(500'000, std::byte{5});
  MultiRequest request;
  CHECK(pair.one.send(peers, 3, message, {}, request) == Status::kPending);
  CHECK(request.status(1) == Status::kUnknownPeer);
  std::vector<std::byte> buffer(message->size());
  for (int i = 0; i < 2; ++i) {
    Request received;
    pair.other.receive(*pair.back, 3, 0, buffer, received);
    while (!received.done()) {
      pair.one.progress();
      pair.other.progress();
    }
    CHECK(buffer == *message);
  }
  while (!pair.one.test(request)) pair.other.progress();
  CHECK(request.status() == Status::kUnknownPeer);
  CHECK(request.status(2) == Status::kOk);
  CHECK(message.use_count() == 1);
}

TEST_CASE(
    "a send to many peers that cannot be copied at once, or whose request is pending, is refused") {
  Pair pair;
  const PeerId peers[] = {pair.there, pair.there};
  const auto message = std::make_shared<const std::vector<std::byte>>(500'000, std::byte{5});
  MultiRequest request;
  SendOptions only_copy;
  only_copy.only_copy = true;
  CHECK(pair.one.send(peers, 3, message, only_copy, request) == Status::kBusy);
  CHECK(request.done());
  CHECK(request.status(1) == Status::kBusy);
  CHECK(message.use_count() == 1);

  CHECK(pair.one.send(peers, 3, message, {}, request) == Status::kPending);
  CHECK(pair.one.wait(request, std::chrono::milliseconds(1)) == Status::kTimedOut);
  CHECK(pair.one.send(peers, 3, message, {}, request) == Status::kBusy);
  CHECK(request.status() == Status::kPending);
  pair.one.close(std::chrono::nanoseconds(0));
  CHECK(request.status() == Status::kClosed);
  CHECK(message.use_count() == 1);
}

TEST_CASE("two threads that close one context at the same time both get the result") {
  Pair pair;
  std::vector<std::byte> bytes(1'000'000);
  Request never;  // not received
  pair.one.send(pair.there, 1, bytes, never);
  std::atomic<bool> closing = false;
  Status told = Status::kPending;
  std::thread patient([&] {
    closing = true;
    told = pair.one.close(std::chrono::seconds(100));
  });
  while (!closing) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));

  const Status hasty = pair.one.close(std::chrono::nanoseconds(0));
  patient.join();

  CHECK(hasty == Status::kTimedOut);
  CHECK(told == Status::kTimedOut);
  CHECK(pair.one.close() == Status::kTimedOut);
  CHECK(never.status() == Status::kClosed);
}

TEST_CASE("a thread that waits lets others into the context") {
  Pair pair;
  Request never;
  std::byte nothing{};
  pair.one.receive(pair.there, 1, 0, {&nothing, 1}, never);
  std::thread waiter([&] { pair.one.wait(never); });

  for (int i = 0; i < 1000; ++i) pair.one.progress();
  CHECK(pair.one.peer_state(pair.there) == PeerState::kConnected);
  CHECK(pair.one.cancel(never));
  waiter.join();

  CHECK(never.status() == Status::kCancelled);
}

}  // namespace pullman
