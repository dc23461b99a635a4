#include "engine/rails/memory_setup.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "memory_ends.h"

namespace pullman::engine {
namespace {

constexpr sim::MemoryFaults kCannotJoin{.joining = 1'000'000};
constexpr sim::MemoryFaults kCannotCreate{.creating = 1'000'000};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("memory is offered to a peer on this host, and to nobody else") {
  sim::SharedMemory memory(1);
  MemoryEnd end(memory, 1);
  end.setup.introduce(end.peer, MemoryEnd::kHost + 1);
  CHECK_FALSE(end.peer.may_share);
  end.setup.introduce(end.peer, 0);
  CHECK_FALSE(end.peer.may_share);

  end.setup.introduce(end.peer, MemoryEnd::kHost);
  CHECK(end.peer.may_share);

  end.peer.epoch = end.epoch;  // it is this engine itself
  end.setup.introduce(end.peer, MemoryEnd::kHost);
  CHECK_FALSE(end.peer.may_share);
}

TEST_CASE("no memory is offered by an engine whose host is not known, or that shares none") {
  sim::SharedMemory memory(1);
  MemoryEnd end(memory, 1);
  auto& resources = end.peers.resources;
  MemorySetup unknown(&end.pairs, end.epoch, 0, resources.random, resources.memory_peers,
                      end.ready);
  MemorySetup none(nullptr, end.epoch, MemoryEnd::kHost, resources.random, resources.memory_peers,
                   end.ready);

  unknown.introduce(end.peer, 0);
  CHECK_FALSE(end.peer.may_share);
  none.introduce(end.peer, MemoryEnd::kHost);
  CHECK_FALSE(end.peer.may_share);
}

TEST_CASE("memory is used at each end once both have joined, and is offered once") {
  MemoryEnds ends;

  ends.here.offer();
  CHECK(ends.here.peer.memory_due);
  CHECK(ends.here.ready.size() == 1);
  CHECK(ends.here.state() == MemoryState::kOffered);
  CHECK(ends.here.peer.memory_rail() == nullptr);
  ends.here.setup.activate_if_joined(ends.here.peer);
  CHECK(ends.here.state() == MemoryState::kOffered);

  REQUIRE(ends.here.tell(ends.there));
  CHECK(ends.there.peer.memory_rail() != nullptr);
  ends.here.setup.activate_if_joined(ends.here.peer);
  CHECK(ends.here.peer.memory_rail() != nullptr);

  ends.here.setup.offer(ends.here.peer);
  ends.there.setup.offer(ends.there.peer);
  CHECK_FALSE(ends.here.peer.memory_due);
  CHECK_FALSE(ends.there.peer.memory_due);
}

TEST_CASE("an end that cannot join says so, and the other leaves what it has offered") {
  MemoryEnds ends(kCannotJoin);
  ends.here.offer();

  REQUIRE(ends.here.tell(ends.there));
  CHECK(ends.there.state() == MemoryState::kLeft);
  REQUIRE(ends.there.peer.memory_due);
  REQUIRE(ends.there.tell(ends.here));

  CHECK(ends.here.state() == MemoryState::kLeft);
  CHECK(ends.here.peers.resources.memory_peers.empty());
}

TEST_CASE("an end that can have no memory offers none") {
  MemoryEnds ends(kCannotCreate);
  ends.there.offer();
  CHECK(ends.there.state() == MemoryState::kLeft);
  CHECK_FALSE(ends.there.peer.memory_due);
  CHECK(ends.there.peers.resources.memory_peers.empty());
}

TEST_CASE("a peer that declines something else than what it was offered is not believed") {
  MemoryEnds ends;
  ends.here.offer();
  std::array<std::byte, wire::kMaxMemoryBytes> bytes;
  const std::size_t length = wire::put_memory(bytes.data(), {.secret = {}, .name = {}});
  wire::FrameReader reader({bytes.data(), length});
  wire::Frame frame;
  REQUIRE(reader.next(frame));

  CHECK(ends.here.setup.handle_frame(ends.here.peer, frame));

  CHECK(ends.here.state() == MemoryState::kOffered);
}

TEST_CASE("when two offers cross, that of the lower epoch counts") {
  MemoryEnds ends;
  ends.here.offer();
  ends.there.offer();

  REQUIRE(ends.there.tell(ends.here));
  CHECK(ends.here.state() == MemoryState::kOffered);
  REQUIRE(ends.here.tell(ends.there));
  CHECK(ends.there.state() == MemoryState::kActive);
  ends.here.setup.activate_if_joined(ends.here.peer);

  CHECK(ends.here.state() == MemoryState::kActive);
  ends.here.send(1, bytes_of("one"));
  CHECK(ends.there.receive() == 1);
}

TEST_CASE("what the peer may not have read leaves before all else when memory is left") {
  MemoryEnds ends;
  ends.share();
  for (const Tag tag : {1, 2, 3}) ends.here.send(tag, bytes_of("text"));
  Packet& lost = *ends.here.peer.outbox.control_packet(100);
  ends.here.peer.home.link.lost().push_back(lost);

  ends.here.setup.leave(ends.here.peer, "test");

  CHECK(ends.here.state() == MemoryState::kLeft);
  CHECK(ends.here.ready.size() == 1);
  auto& left = packets_to_leave_again(ends.here.peer);
  CHECK(left.size() == 4);
  CHECK(&left.back() == &lost);
  CHECK(ends.there.rail().pair().has_ended());
}

TEST_CASE("a peer that sleeps is woken by a PING on the rail of a NIC") {
  MemoryEnds ends;
  ends.share();
  ends.here.peer.home.ping_due = false;

  ends.here.setup.wake(ends.here.peer);

  CHECK(ends.here.peer.home.ping_due);
  CHECK(ends.here.ready.size() == 1);
  CHECK_FALSE(ends.here.peer.memory->wake_due);
}

}  // namespace pullman::engine
