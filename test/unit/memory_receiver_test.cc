#include "engine/memory_receiver.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "memory_ends.h"

namespace pullman::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::array<std::byte, 8> kText{std::byte{'t'}};

// Writes a record that no packet has.
void write_record(MemoryEnd& end, std::span<const std::byte> bytes, bool is_reference = false) {
  std::byte* place = end.rail().pair().out().reserve(bytes.size());
  REQUIRE(place != nullptr);
  std::memcpy(place, bytes.data(), bytes.size());
  end.rail().pair().out().commit(is_reference);
}

// A long message of `here`, whose chunk is referred to.
struct LongMessage {
  explicit LongMessage(MemoryEnds& ends) {
    REQUIRE_FALSE(ends.here.peer.outbox.send(ends.here.peer.id, 1, bytes, request));
    Packet* packet = ends.here.peer.outbox.next_packet(message::Outbox::Heads::kFull,
                                                       ends.here.rail().max_packet());
    REQUIRE(packet != nullptr);
    ends.here.rail().post(*packet);
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(50'000, std::byte{7});
  Request request;
};

}  // namespace

TEST_CASE("a message in memory is received, and then its packet is free") {
  MemoryEnds ends;
  ends.share();
  ends.here.send(1, kText);
  CHECK(ends.here.packets_in_use() == 1);

  CHECK(ends.there.receive() == 1);
  CHECK(ends.there.messages() == 1);
  CHECK(ends.here.receive() == 0);

  CHECK(ends.here.packets_in_use() == 0);
  CHECK(ends.here.peer.outbox.idle());
}

TEST_CASE("what is left of many records is received in the next turns") {
  MemoryEnds ends;
  ends.share();
  std::array<std::byte, wire::kPingBytes> ping;
  wire::put_ping(ping.data());
  for (int i = 0; i < 100; ++i) write_record(ends.here, ping);

  CHECK(ends.there.receive() == 64);
  CHECK(ends.there.receiver.has_deferred());
  CHECK_FALSE(ends.there.receiver.prepare_to_block());
  CHECK(ends.there.receive() == 36);
  CHECK_FALSE(ends.there.receiver.has_deferred());
}

TEST_CASE("memory is left when the peer has written what is no frame, or no reference") {
  const bool is_reference = GENERATE(false, true);
  MemoryEnds ends;
  ends.share();
  write_record(ends.here, std::vector<std::byte>(24, std::byte{0xEE}), is_reference);

  ends.there.receive();

  CHECK(ends.there.state() == MemoryState::kLeft);
  CHECK(ends.there.messages() == 0);
}

TEST_CASE("all that the peer had written is received before the memory is left that it has ended") {
  MemoryEnds ends;
  ends.share();
  ends.here.send(1, kText);
  ends.here.send(2, kText);
  ends.here.setup.leave(ends.here.peer, "test");

  ends.there.receive();

  CHECK(ends.there.messages() == 2);
  CHECK(ends.there.state() == MemoryState::kLeft);
}

TEST_CASE("bytes that a record refers to are read where they are") {
  MemoryEnds ends;
  ends.share();
  const LongMessage message(ends);
  std::vector<std::byte> into(message.bytes.size());
  Request receive;
  ends.there.matching.receive(ends.there.now, ends.there.peer.id, 1, 0, into, receive);

  CHECK(ends.there.receive() == 1);

  CHECK(receive.done());
  CHECK(into == message.bytes);
  ends.here.receive();
  CHECK(message.request.done());
}

TEST_CASE("memory is left when for 20 ms the bytes of a record cannot be read") {
  MemoryEnds ends(sim::MemoryFaults{.reading = 1'000'000});
  ends.share();
  const LongMessage message(ends);

  ends.there.receive();
  CHECK(ends.there.state() == MemoryState::kActive);
  CHECK(ends.there.receiver.next_due() == ends.there.now + milliseconds(1));
  ends.there.now += milliseconds(19);
  ends.there.receive();
  CHECK(ends.there.state() == MemoryState::kActive);
  ends.there.now += milliseconds(1);
  ends.there.receive();

  CHECK(ends.there.state() == MemoryState::kLeft);
  CHECK(ends.there.peers.resources.inbox_counters.messages == 0);
  ends.here.lifecycle.abort();  // ends the request
}

TEST_CASE("a process may block when nothing has come, and first looks again soon") {
  MemoryEnds ends;
  ends.share();
  ends.there.receive();
  CHECK(ends.there.receiver.prepare_to_block());
  CHECK(ends.there.receiver.next_due() == ends.there.now + shm::Pair::kSettle);

  ends.there.now += shm::Pair::kSettle;
  ends.there.receive();
  CHECK(ends.there.receiver.prepare_to_block());
  CHECK(ends.there.receiver.next_due() == kNever);
}

TEST_CASE("a process must not block when a record has come, until it was received") {
  MemoryEnds ends;
  ends.share();
  ends.there.receive();
  ends.here.send(1, kText);
  CHECK_FALSE(ends.there.receiver.prepare_to_block());

  ends.there.receive();
  CHECK(ends.there.receiver.prepare_to_block());
}

TEST_CASE("a peer that says that it sleeps is woken for what was written to it, once") {
  MemoryEnds ends;
  ends.share();
  ends.here.receive();
  ends.there.receive();
  REQUIRE(ends.there.receiver.prepare_to_block());
  ends.here.peer.home.ping_due = false;
  ends.here.send(1, kText);

  ends.here.receive();
  CHECK(ends.here.peer.home.ping_due);
  ends.here.peer.home.ping_due = false;
  ends.here.send(2, kText);
  ends.here.receive();
  CHECK_FALSE(ends.here.peer.home.ping_due);
}

TEST_CASE("a peer whose process has ended ends once all that it wrote was received") {
  MemoryEnds ends;
  ends.share();
  ends.here.send(1, kText);
  ends.memory.remove_process(1);

  ends.there.watch.look(ends.there.now, 0);
  CHECK(ends.there.watch.has_work());
  CHECK(ends.there.peer.phase == Phase::kConnected);
  ends.there.now += milliseconds(1);
  ends.there.watch.look(ends.there.now, 1);
  CHECK(ends.there.peer.phase == Phase::kConnected);
  ends.there.watch.look(ends.there.now, 0);

  CHECK(ends.there.messages() == 1);
  CHECK(ends.there.peer.phase == Phase::kGone);
  CHECK(ends.there.peer.why == Status::kPeerDied);
}

TEST_CASE("a process whose end is not told is found dead within 250 ms") {
  sim::MemoryFaults faults;
  faults.polled = 1'000'000;
  MemoryEnds ends(faults);
  ends.share();
  ends.there.watch.look(ends.there.now, 0);
  ends.memory.remove_process(1);

  ends.there.now += milliseconds(249);
  ends.there.watch.look(ends.there.now, 0);
  CHECK_FALSE(ends.there.watch.has_work());
  CHECK(ends.there.watch.next_due() <= ends.there.now + milliseconds(1));
  ends.there.now += milliseconds(1);
  ends.there.watch.look(ends.there.now, 0);
  CHECK(ends.there.watch.has_work());
  ends.there.watch.look(ends.there.now, 0);

  CHECK(ends.there.peer.phase == Phase::kGone);
  CHECK(ends.there.watch.next_due() == kNever);
}

namespace {

// Counts how often processes are polled.
struct CountingPairs : shm::Pairs {
  explicit CountingPairs(std::size_t count) : processes(count) {}

  shm::Pair create(const shm::Secret&) override { throw shm::MemoryError("none"); }
  shm::Pair join(std::string_view, const shm::Secret&) override { throw shm::MemoryError("none"); }
  bool any_ended() const override { return false; }
  std::size_t polled() const override { return processes; }
  void poll_next(std::size_t count) override {
    most = std::max(most, count);
    polls += count;
  }

  const std::size_t processes;
  std::size_t most = 0;
  std::size_t polls = 0;
};

}  // namespace

TEST_CASE("each process is polled four times a second, a few in a turn, however rare turns are") {
  MemoryEnds ends;
  ends.share();
  MemoryEnd& end = ends.there;
  CountingPairs pairs(GENERATE(1u, 2u, 24u, 500u));
  MemoryWatch watch{&pairs, end.peers.resources.memory_peers, end.poller, end.lifecycle,
                    end.receiver};
  const Duration pause = GENERATE(microseconds(100), milliseconds(10), milliseconds(249));
  const auto turn = [&] {
    do {
      watch.prepare_to_block();
      watch.look(end.now, 0);
    } while (watch.next_due() <= end.now);
  };
  turn();
  pairs.polls = 0;

  const Instant begin = end.now;
  for (; end.now < begin + seconds(10); turn()) end.now += pause;

  CHECK(pairs.most <= 8);
  CHECK(pairs.polls >= 39 * pairs.processes);
  CHECK(pairs.polls <= 41 * pairs.processes);
}

TEST_CASE("the end of a process is seen although others send all the time") {
  MemoryEnds ends;
  ends.share();
  ends.memory.remove_process(1);

  int turns = 0;
  for (; ends.there.peer.phase != Phase::kGone && turns < 1000; ++turns) {
    ends.there.now += microseconds(1);
    ends.there.watch.look(ends.there.now, 1);
  }

  CHECK(turns < 100);
}

}  // namespace pullman::engine
