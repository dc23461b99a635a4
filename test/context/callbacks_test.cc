// Requests that call the program when they are done, and what a callback may do.
#include <poll.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "context/exchange.h"
#include "pullman/callback_request.h"

namespace pullman::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two contexts whose programs do nothing but make progress.
struct Two {
  explicit Two(const Config& config = config_of("udp")) : one(config), other(config) {
    there = one.connect(other.address());
  }
  // Each waits for the other's BYE.
  ~Two() {
    std::thread beside([this] { other.close(seconds(2)); });
    one.close(seconds(2));
    beside.join();
  }

  // Returns whether it became true in time.
  bool turn_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      one.progress();
      other.progress();
    }
    return true;
  }

  // One byte to the other, which is delivered if it takes it.
  void knock(Request& request, Tag tag = 1) { one.send(there, tag, {&byte, 1}, request); }

  std::byte byte{};
  Context one;
  Context other;
  PeerId there;
};

TEST_CASE("a callback is called once each time the request is done, and not where it was started",
          "[callback]") {
  Two two;
  std::byte room{};
  int calls = 0;
  CallbackRequest received(two.other, [&](CallbackRequest& done) {
    CHECK(&done == &received);
    CHECK(done.status() == Status::kOk);
    CHECK(done.length() == 1);
    ++calls;
  });
  int copied = 0;
  CallbackRequest sent(two.one, [&](CallbackRequest&) { ++copied; });
  for (int round = 1; round <= 3; ++round) {
    two.other.receive(kAnyPeer, 1, 0, {&room, 1}, received);
    CHECK(two.one.send(two.there, 1, {&two.byte, 1}, sent) == Status::kOk);
    CHECK(copied == round - 1);
    REQUIRE(two.turn_until([&] { return calls == round && copied == round; }));
  }
  for (int i = 0; i < 10; ++i) two.other.progress();
  CHECK(calls == 3);
}

TEST_CASE("two programs of nothing but callbacks play ping-pong", "[callback]") {
  constexpr int kRounds = 1000;
  Two two;
  std::byte ball{};
  std::byte their_ball{};
  int rounds = 0;
  std::optional<CallbackRequest> answer;
  std::optional<CallbackRequest> served;
  Request sent;
  CallbackRequest asked(two.other, [&](CallbackRequest& done) {
    two.other.send(done.source(), 2, {&their_ball, 1}, *served);
  });
  served.emplace(two.other, [&](CallbackRequest&) {
    two.other.receive(kAnyPeer, 1, 0, {&their_ball, 1}, asked);
  });
  answer.emplace(two.one, [&](CallbackRequest& done) {
    if (++rounds == kRounds) return;
    two.one.receive(two.there, 2, 0, {&ball, 1}, done);
    two.knock(sent);
  });
  two.other.receive(kAnyPeer, 1, 0, {&their_ball, 1}, asked);
  two.one.receive(two.there, 2, 0, {&ball, 1}, *answer);
  two.knock(sent);
  CHECK(two.turn_until([&] { return rounds == kRounds; }));
  two.other.cancel(asked);
}

TEST_CASE("a callback may leave its peer, and ends the requests that the peer had", "[callback]") {
  const bool gracefully = GENERATE(true, false);
  Two two;
  std::byte room{};
  std::byte more{};
  CallbackRequest received(two.other, [&](CallbackRequest& done) {
    if (gracefully) {
      two.other.disconnect(done.source());
    } else {
      two.other.abandon(done.source());
    }
  });
  two.other.receive(kAnyPeer, 1, 0, {&room, 1}, received);
  Request sent;
  two.knock(sent);
  std::optional<PeerId> back;
  REQUIRE(two.turn_until([&] { return back || (back = two.other.accept()).has_value(); }));
  Status ended = Status::kPending;
  CallbackRequest waiting(two.other, [&](CallbackRequest& done) { ended = done.status(); });
  two.other.receive(*back, 9, 0, {&more, 1}, waiting);
  CHECK(two.turn_until([&] { return ended != Status::kPending; }));
  CHECK(ended != Status::kOk);
}

TEST_CASE("a callback may destroy its own request, and others that are due", "[callback]") {
  Two two;
  std::vector<std::byte> room(3);
  std::vector<std::unique_ptr<CallbackRequest>> requests;
  int calls = 0;
  const auto witness = std::make_shared<int>(7);
  for (std::size_t i = 0; i < room.size(); ++i) {
    requests.push_back(std::make_unique<CallbackRequest>(two.other, [&, witness](CallbackRequest&) {
      ++calls;
      requests.clear();      // the callback that runs is one of them
      CHECK(*witness == 7);  // and what it has captured is still there
    }));
    two.other.receive(kAnyPeer, i, 0, {&room[i], 1}, *requests.back());
  }
  std::byte first{};
  Request met;
  Request hello;
  two.other.receive(kAnyPeer, 9, 0, {&first, 1}, met);
  two.knock(hello, 9);
  REQUIRE(two.turn_until([&] { return met.done() && hello.done(); }));
  std::vector<Request> sent(3);
  for (Tag tag = 0; tag < 3; ++tag) two.knock(sent[tag], tag);
  for (int i = 0; i < 10; ++i) two.one.progress();
  // All three become done in one turn.
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (calls == 0 && std::chrono::steady_clock::now() < end) two.other.progress();
  for (int i = 0; i < 10; ++i) two.other.progress();
  CHECK(requests.empty());
  CHECK(calls == 1);
}

TEST_CASE("a callback may wait, and other callbacks are called afterwards", "[callback]") {
  Two two;
  std::vector<std::byte> room(2);
  std::byte reply{};
  std::vector<int> order;
  int depth = 0;
  const auto note = [&](int which, const std::function<void()>& act = {}) {
    return [&, which, act](CallbackRequest&) {
      CHECK(++depth == 1);
      if (act) act();
      order.push_back(which);
      --depth;
    };
  };
  Request loop;
  CallbackRequest first(two.one, note(1, [&] {
                          // It is this process itself, so nobody else need make progress.
                          const PeerId self = two.one.connect(two.one.address());
                          two.one.receive(self, 5, 0, {&reply, 1}, loop);
                          Request sent;
                          two.one.send(self, 5, {&two.byte, 1}, sent);
                          CHECK(two.one.wait(loop, seconds(5)) == Status::kOk);
                          CHECK(two.one.wait(sent, seconds(5)) == Status::kOk);
                        }));
  CallbackRequest second(two.one, note(2));
  two.knock(first, 1);
  two.knock(second, 2);
  CHECK(two.turn_until([&] { return order.size() == 2; }));
  CHECK(order == std::vector{1, 2});
}

TEST_CASE("a callback may close the context: what is pending ends, and a call that waits returns",
          "[callback]") {
  Two two;
  std::byte room{};
  Status ended = Status::kPending;
  CallbackRequest waiting(two.one, [&](CallbackRequest& done) {
    ended = done.status();
    // Whatever it begins now ends at once, and nobody is called for ever.
    two.one.receive(kAnyPeer, 9, 0, {&room, 1}, done);
  });
  two.one.receive(kAnyPeer, 9, 0, {&room, 1}, waiting);
  CallbackRequest sent(two.one, [&](CallbackRequest&) { two.one.close(seconds(5)); });
  std::atomic<bool> over = false;
  std::thread beside([&] {
    while (!over) two.other.wait_for_arrival(milliseconds(1));
  });
  two.knock(sent);
  const auto begin = std::chrono::steady_clock::now();
  two.one.wait_for_arrival(seconds(20));
  CHECK(std::chrono::steady_clock::now() - begin < seconds(15));
  over = true;
  beside.join();
  CHECK(ended == Status::kClosed);
}

TEST_CASE("an exception leaves the call, and what else is due is called next time", "[callback]") {
  Two two;
  int calls = 0;
  CallbackRequest bad(two.one,
                      [](CallbackRequest&) { throw std::runtime_error("of the program"); });
  CallbackRequest good(two.one, [&](CallbackRequest&) { ++calls; });
  two.knock(bad, 1);
  two.knock(good, 2);
  CHECK_THROWS_WITH(two.one.progress(), "of the program");
  CHECK(calls == 0);
  two.one.progress();
  CHECK(calls == 1);
}

TEST_CASE("what a callback has captured may call the context when it ends", "[callback]") {
  struct Session {
    explicit Session(Two& of) : two(of) {}
    ~Session() { two.one.disconnect(two.there); }
    Two& two;
    std::optional<CallbackRequest> request;
  };
  Config config = config_of("udp");
  config.threads = Config::Threads::kMany;
  Two two(config);
  auto session = std::make_shared<Session>(two);
  const std::weak_ptr<Session> there = session;
  session->request.emplace(two.one, [session](CallbackRequest&) { session->request.reset(); });
  two.knock(*session->request);
  session.reset();
  CHECK(two.turn_until([&] { return there.expired(); }));
}

TEST_CASE("close() ends what a callback in the library's thread waits for", "[callback]") {
  Config config = config_of("udp");
  config.progress = Config::Progress::kThread;
  Two two(config);
  std::byte room{};
  Request never;
  std::atomic<bool> waits = false;
  CallbackRequest sent(two.one, [&](CallbackRequest&) {
    two.one.receive(kAnyPeer, 9, 0, {&room, 1}, never);
    waits = true;
    two.one.wait(never);
  });
  two.knock(sent);
  while (!waits) std::this_thread::sleep_for(milliseconds(1));
  two.one.close(seconds(2));
  CHECK(never.status() == Status::kClosed);
}

TEST_CASE("a program does not fall asleep over callbacks that are due", "[callback]") {
  Two two;
  while (!two.one.prepare_wait()) {
  }
  int calls = 0;
  CallbackRequest sent(two.one, [&](CallbackRequest&) { ++calls; });
  two.knock(sent);
  CHECK_FALSE(two.one.prepare_wait());
  CHECK(calls == 1);

  // Those that a callback makes due are called when it has returned, and not waited for in it.
  bool idle = false;
  CallbackRequest nested(two.one, [&](CallbackRequest&) {
    two.knock(sent);
    for (int i = 0; i < 1000 && !idle; ++i) idle = two.one.prepare_wait();
  });
  two.knock(nested);
  CHECK_FALSE(two.one.prepare_wait());
  CHECK(idle);
  CHECK(calls == 1);
  two.one.progress();
  CHECK(calls == 2);
}

TEST_CASE("with many threads each callback is called once, without the lock", "[callback]") {
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  const bool progress_thread = GENERATE(false, true);
  Config config = config_of("udp");
  config.threads = Config::Threads::kMany;
  if (progress_thread) config.progress = Config::Progress::kThread;
  Two two(config);
  std::atomic<int> received = 0;
  std::atomic<int> sent = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Tag tag = static_cast<Tag>(t);
      std::byte room{};
      std::atomic<int> mine = 0;
      CallbackRequest receive(two.other, [&](CallbackRequest& done) {
        ++received;
        if (++mine < kEach) two.other.receive(kAnyPeer, tag, 0, {&room, 1}, done);
      });
      std::atomic<int> gone = 0;
      CallbackRequest send(two.one, [&](CallbackRequest& done) {
        ++sent;
        if (++gone < kEach) two.one.send(two.there, tag, {&two.byte, 1}, done);
      });
      two.other.receive(kAnyPeer, tag, 0, {&room, 1}, receive);
      two.one.send(two.there, tag, {&two.byte, 1}, send);
      const auto end = std::chrono::steady_clock::now() + kLongest;
      while ((mine < kEach || gone < kEach) && std::chrono::steady_clock::now() < end) {
        if (progress_thread) {
          std::this_thread::sleep_for(milliseconds(1));
        } else {
          two.one.progress();
          two.other.progress();
        }
      }
      // Other threads may still be in a callback of these requests.
      std::this_thread::sleep_for(milliseconds(20));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(received == kThreads * kEach);
  CHECK(sent == kThreads * kEach);
}

TEST_CASE("a callback in the library's thread may close the context", "[callback]") {
  Config config = config_of("udp");
  config.progress = Config::Progress::kThread;
  Two two(config);
  std::byte room{};
  std::atomic<Status> ended = Status::kPending;
  CallbackRequest waiting(two.one, [&](CallbackRequest& done) { ended = done.status(); });
  two.one.receive(kAnyPeer, 9, 0, {&room, 1}, waiting);
  std::atomic<bool> closed = false;
  CallbackRequest sent(two.one, [&](CallbackRequest&) {
    two.one.close(seconds(5));
    closed = true;
  });
  two.knock(sent);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (ended == Status::kPending && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(closed);
  CHECK(ended == Status::kClosed);
}

TEST_CASE("callbacks that begin anew for ever do not keep their context open", "[callback]") {
  int calls = 0;
  std::optional<CallbackRequest> last;
  {
    Context context(config_of("udp"));
    std::byte byte{};
    last.emplace(context, [&](CallbackRequest& done) {
      ++calls;
      context.send({}, 1, {&byte, 1}, done);  // ends at once, and is due again
    });
    context.send({}, 1, {&byte, 1}, *last);
  }
  CHECK(calls >= 1);
  CHECK(calls <= 3);
  CHECK(last->done());
}

}  // namespace
}  // namespace pullman::test
