// A program that makes no calls does not delay its peer: ACKs, grants and retransmissions leave in
// time.
#include <atomic>
#include <memory>
#include <thread>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::array<std::size_t, 5> kSizes{4096, 16384, 65536, 262144, 1 << 20};

// Returns the next entry of `side`, while the program makes no other call.
Said next_alone(Side& side) {
  Said said;
  const std::clock_t end = deadline();
  while (!side.look(said)) {
    if (std::clock() > end) throw std::runtime_error("nothing came");
  }
  return said;
}

}  // namespace

TEST_CASE("a send completes although its receiver makes no call once it has the message") {
  const auto progress = GENERATE(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO);
  Pair pair({.progress = progress});
  for (const std::size_t size : kSizes) {
    const auto sent = content(size, 1);
    std::vector<char> buffer(size);
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), size, nullptr, pair.to_a, 7, 0, nullptr));
    MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), size, nullptr, pair.to_b, 7, nullptr));
    Said said;
    bool done = false;
    while (!pair.b->look(said)) done = pair.a->look(said) || done;

    if (!done) CHECK(next_alone(*pair.a).entry.flags == (FI_TAGGED | FI_SEND));
    CHECK(buffer == sent);
  }
}

TEST_CASE("a message arrives although its sender makes no call once it has sent it") {
  const auto progress = GENERATE(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO);
  Pair pair({.progress = progress});
  for (const std::size_t size : kSizes) {
    const auto sent = content(size, 2);
    std::vector<char> buffer(size);
    MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), size, nullptr, pair.to_b, 7, nullptr));
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), size, nullptr, pair.to_a, 7, 0, nullptr));

    CHECK(next_alone(*pair.b).entry.len == size);
    CHECK(buffer == sent);
    next_alone(*pair.a);  // `sent` may be freed after this
  }
}

TEST_CASE("a receiver that sleeps gets the message of a sender that makes no further call") {
  Pair pair({.wait = FI_WAIT_FD});
  for (const std::size_t size : kSizes) {
    const auto sent = content(size, 3);
    std::vector<char> buffer(size);
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), size, nullptr, pair.to_a, 7, 0, nullptr));
    MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), size, nullptr, pair.to_b, 7, nullptr));

    fi_cq_tagged_entry entry{};
    CHECK(fi_cq_sread(pair.b->completions.get(), &entry, 1, nullptr, 60'000) == 1);
    CHECK(buffer == sent);
    next_alone(*pair.a);  // `sent` may be freed after this
  }
}

// Open MPI reads a queue until it is empty, and then its program may compute for long. A lost ACK
// would not be repeated here.
TEST_CASE("no requested ACK is pending once a queue has been read empty", "[lossless]") {
  const auto patient = patient_pair();
  Pair& pair = *patient;
  const bool is_whole = GENERATE(true, false);
  const std::size_t size = is_whole ? 100 : 200'000;
  const auto sent = content(size, 4);
  std::vector<char> buffer(size);
  const iovec piece{const_cast<char*>(sent.data()), size};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = pair.to_b;
  message.tag = 7;
  for (int i = 0; i < 20; ++i) {
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), size, nullptr, pair.to_a, 7, 0, nullptr));
    MUST(fi_tsendmsg(pair.a->endpoint.get(), &message, FI_DELIVERY_COMPLETE));
    std::array<fi_cq_tagged_entry, 8> entries;
    const auto read = [&] {
      return fi_cq_read(pair.b->completions.get(), entries.data(), entries.size());
    };
    bool done = false;
    Said said;
    const std::clock_t end = deadline();
    while (read() != 1) {
      done = pair.a->look(said) || done;
      REQUIRE(std::clock() < end);
    }
    CHECK(read() == -FI_EAGAIN);

    if (!done) next_alone(*pair.a);
    REQUIRE(buffer == sent);
  }
}

// Closing wakes the progress thread twice, and once in a thousand times the second wake-up
// coincides with its clearing of the first. It would then sleep for a minute, longer than this test
// spins.
TEST_CASE("closing an endpoint does not wait for the progress thread to wake by itself") {
  setenv("FI_PULLMAN_PATIENCE", "60000", 1);
  for (int i = 0; i < 60; ++i) {
    auto pair = std::make_unique<Pair>();
    std::atomic<bool> closed = false;
    std::thread closing([&] {
      pair.reset();
      closed = true;
    });
    const std::clock_t end = std::clock() + 20 * CLOCKS_PER_SEC;
    while (!closed && std::clock() < end) std::this_thread::yield();
    CHECK(closed);
    closing.join();
  }
  unsetenv("FI_PULLMAN_PATIENCE");
}

// One thread sleeps, and another one's calls cancel what was to wake it.
TEST_CASE("an application that is idle for a while uses no processor time for its packets") {
  Pair pair({.progress = FI_PROGRESS_MANUAL});
  using namespace std::chrono_literals;
  std::this_thread::sleep_for(200ms);  // nothing is under way, and pauses are long
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(400ms);
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 10);  // of both ends
}

TEST_CASE("a thread that sleeps is woken although another thread of its domain sends meanwhile") {
  Pair pair({.wait = FI_WAIT_FD, .threading = FI_THREAD_SAFE});
  std::vector<char> bytes(8), buffer(8);
  std::thread sleeper([&] {
    fi_cq_tagged_entry entry{};
    for (int i = 0; i < 100; ++i) {
      MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));
      if (fi_cq_sread(pair.b->completions.get(), &entry, 1, nullptr, 60'000) != 1) return;
      MUST(fi_tinject(pair.b->endpoint.get(), bytes.data(), 8, pair.to_a, 8));
    }
  });
  int answers = 0;
  for (int i = 0; i < 100; ++i) {
    MUST(fi_tinject(pair.b->endpoint.get(), bytes.data(), 8, pair.to_a, 9));  // not received
    std::vector<char> answer(8);
    MUST(fi_trecv(pair.a->endpoint.get(), answer.data(), 8, nullptr, pair.to_b, 8, 0, nullptr));
    MUST(fi_tinject(pair.a->endpoint.get(), bytes.data(), 8, pair.to_b, 7));
    if (next_alone(*pair.a).entry.len == 8) ++answers;
  }
  sleeper.join();
  CHECK(answers == 100);
}

// Fails when the test process ends: unloading the provider under its thread would crash.
TEST_CASE("a program may end with its endpoints open") {
  static Pair* left = nullptr;
  left = new Pair;
  CHECK(left->info != nullptr);
}

}  // namespace pullman::test
