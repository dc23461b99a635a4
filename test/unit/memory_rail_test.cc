#include "engine/local/memory_rail.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "channel/packet.h"
#include "shared_folder.h"
#include "shm/pairs.h"

namespace pullman::engine {
namespace {

using channel::Packet;
using MayBlock = MemoryRail::MayBlock;

constexpr std::size_t kPacketBytes = 1472;
constexpr shm::Secret kSecret{std::byte{1}};

// Both ends of a rail, and packets of one of them.
struct Rails {
  ~Rails() {
    while (Packet* packet = here.take_unread()) pool.give_back(*packet);
  }
  // A packet whose frames are these bytes, and whose payload lies elsewhere.
  Packet& packet(std::string_view frames, std::string_view payload = {}) {
    Packet& made = *pool.take(kPacketBytes);
    made.used = wire::kHeaderBytes;
    std::memcpy(made.end(), frames.data(), frames.size());
    made.used += static_cast<std::uint32_t>(frames.size());
    made.payload = reinterpret_cast<const std::byte*>(payload.data());
    made.payload_bytes = static_cast<std::uint32_t>(payload.size());
    return made;
  }
  static std::string read(MemoryRail& rail) {
    const auto frames = rail.front();
    if (!frames) return "nothing";
    std::string text(reinterpret_cast<const char*>(frames->data()), frames->size());
    rail.pop();
    return text;
  }

  shm::SharedFolder folder;
  channel::PacketPool pool{256, kPacketBytes};
  shm::SegmentPairs pairs{folder.path()};
  MemoryRail here{pairs.create(kSecret)};
  MemoryRail there{pairs.join(here.pair().name(), kSecret)};
};

}  // namespace

TEST_CASE("what packets carry comes through memory in order, without their headers") {
  Rails rails;
  rails.here.post(rails.packet("one"));
  rails.here.post(rails.packet("head ", "and payload"));

  CHECK(Rails::read(rails.there) == "one");
  CHECK(Rails::read(rails.there) == "head and payload");
  CHECK(Rails::read(rails.there) == "nothing");
}

TEST_CASE("a packet is in flight until the peer has read its record") {
  Rails rails;
  Packet& first = rails.packet("one");
  Packet& second = rails.packet("two");
  rails.here.post(first);
  rails.here.post(second);
  CHECK(rails.here.take_read() == nullptr);

  Rails::read(rails.there);

  CHECK(rails.here.take_read() == &first);
  CHECK(rails.here.take_read() == nullptr);
  CHECK(rails.here.in_flight() == 1);
  rails.pool.give_back(first);
}

TEST_CASE("a packet for which the memory has no room waits until there is some") {
  Rails rails;
  const std::string payload(1400, 'x');
  std::size_t posted = 0;
  for (; rails.here.has_room(); ++posted) rails.here.post(rails.packet("head", payload));
  CHECK(rails.here.in_flight() == posted);
  CHECK(posted >= shm::Pair::kCapacity / 1500);
  CHECK_FALSE(rails.here.flush());

  std::size_t read = 0;
  for (; !rails.here.flush(); ++read) REQUIRE(Rails::read(rails.there) != "nothing");
  CHECK(read <= 2);  // the rest of a lap may be too short
  CHECK(rails.here.has_room());
  CHECK(rails.here.in_flight() == posted);
  CHECK_FALSE(rails.here.flush());
}

TEST_CASE("packets that the peer may not have read are given back in order when the rail is left") {
  Rails rails;
  std::vector<Packet*> sent;
  const std::string payload(1400, 'x');
  while (rails.here.has_room()) {
    sent.push_back(&rails.packet("head", payload));
    rails.here.post(*sent.back());
  }
  Rails::read(rails.there);
  REQUIRE(rails.here.take_read() == sent[0]);

  for (std::size_t i = 1; i < sent.size(); ++i) CHECK(rails.here.take_unread() == sent[i]);
  CHECK(rails.here.take_unread() == nullptr);
  for (Packet* packet : sent) rails.pool.give_back(*packet);
}

TEST_CASE("a rail is over when the peer has ended it and its last record was read") {
  Rails rails;
  rails.here.post(rails.packet("last"));
  CHECK_FALSE(rails.there.is_over());
  rails.here.end();
  CHECK_FALSE(rails.there.is_over());
  CHECK(Rails::read(rails.there) == "last");
  CHECK(rails.there.is_over());
  CHECK_FALSE(rails.here.is_over());
}

TEST_CASE("a peer that is about to block is woken for a packet, or does not block") {
  Rails rails;
  CHECK(rails.there.prepare_to_block() == MayBlock::kBriefly);
  CHECK(rails.there.prepare_to_block() == MayBlock::kYes);
  rails.here.post(rails.packet("one"));
  CHECK(rails.here.must_wake());
  CHECK_FALSE(rails.here.must_wake());
  CHECK(rails.there.prepare_to_block() == MayBlock::kNo);
  CHECK(rails.there.prepare_to_block(true) == MayBlock::kYes);
  rails.there.found_news();
  rails.here.post(rails.packet("two"));
  CHECK_FALSE(rails.here.must_wake());
}

TEST_CASE("a sender that is about to block is woken once its packet was read, or does not block") {
  Rails rails;
  rails.here.post(rails.packet("one"));
  SECTION("it was not read yet") {
    CHECK(rails.here.prepare_to_block() == MayBlock::kBriefly);
    CHECK(Rails::read(rails.there) == "one");
    CHECK(rails.there.must_wake());
  }
  SECTION("it was read") {
    CHECK(Rails::read(rails.there) == "one");
    CHECK(rails.here.prepare_to_block() == MayBlock::kNo);
  }
}

TEST_CASE("a long payload stays where it is if the peer can read it there") {
  Rails rails;
  const std::string payload(20'000, 'x');
  rails.there.pair().meet();
  REQUIRE(rails.here.max_packet() > payload.size());

  rails.here.post(rails.packet("head", payload));

  const auto record = rails.there.front();
  REQUIRE(record);
  REQUIRE(rails.there.is_reference());
  const auto reference = MemoryRail::reference(*record);
  REQUIRE(reference);
  CHECK(reference->frame.size() == 4);
  std::string read(payload.size(), ' ');
  REQUIRE(rails.there.read(reference->address, std::as_writable_bytes(std::span(read))));
  CHECK(read == payload);
  CHECK_FALSE(rails.there.read(1, std::as_writable_bytes(std::span(read))));
  CHECK_FALSE(MemoryRail::reference(record->first(7)));
}

TEST_CASE("a payload is not read from a peer that has ended the rail") {
  Rails rails;
  const std::string payload(20'000, 'x');
  rails.there.pair().meet();
  rails.here.post(rails.packet("head", payload));
  const auto record = rails.there.front();
  REQUIRE(record);
  rails.here.end();
  std::string read(payload.size(), ' ');
  CHECK_FALSE(rails.there.read(MemoryRail::reference(*record)->address,
                               std::as_writable_bytes(std::span(read))));
  CHECK(read == std::string(payload.size(), ' '));
}

TEST_CASE("a payload is copied if the peer cannot read it, or if it is short") {
  Rails rails;
  const bool reads = GENERATE(true, false);
  if (reads) rails.there.pair().meet();
  const std::string payload(reads ? 1000 : 5000, 'x');
  rails.here.post(rails.packet("head", payload));
  CHECK(Rails::read(rails.there) == "head" + payload);
  CHECK_FALSE(rails.there.is_reference());
}

}  // namespace pullman::engine
