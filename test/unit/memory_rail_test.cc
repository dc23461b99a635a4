#include "engine/local/memory_rail.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "channel/packet.h"
#include "shared_folder.h"

namespace pullman::engine {
namespace {

using channel::Packet;

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
  MemoryRail here{shm::Pair::create(kSecret, folder.path())};
  MemoryRail there{shm::Pair::join(here.pair().name(), kSecret, folder.path())};
};

}  // namespace

TEST_CASE("what packets carry comes through memory in order, without their headers") {
  Rails rails;
  REQUIRE(rails.here.send(rails.packet("one")));
  REQUIRE(rails.here.send(rails.packet("head ", "and payload")));

  CHECK(Rails::read(rails.there) == "one");
  CHECK(Rails::read(rails.there) == "head and payload");
  CHECK(Rails::read(rails.there) == "nothing");
}

TEST_CASE("a packet is in flight until the peer has read its record") {
  Rails rails;
  Packet& first = rails.packet("one");
  Packet& second = rails.packet("two");
  REQUIRE(rails.here.send(first));
  REQUIRE(rails.here.send(second));
  CHECK(rails.here.take_read() == nullptr);

  Rails::read(rails.there);

  CHECK(rails.here.take_read() == &first);
  CHECK(rails.here.take_read() == nullptr);
  CHECK(rails.here.in_flight() == 1);
  rails.pool.give_back(first);
}

TEST_CASE("a packet for which the memory has no room stays its owner's until there is some") {
  Rails rails;
  const std::string payload(1400, 'x');
  std::size_t sent = 0;
  Packet* waiting = nullptr;
  for (;; ++sent) {
    waiting = &rails.packet("head", payload);
    if (!rails.here.send(*waiting)) break;
  }
  CHECK(rails.here.in_flight() == sent);
  CHECK(sent >= shm::Pair::kCapacity / 1500);

  std::size_t read = 0;
  for (; !rails.here.send(*waiting); ++read) REQUIRE(Rails::read(rails.there) != "nothing");
  CHECK(read <= 2);  // the rest of a lap may be too short
  CHECK(rails.here.in_flight() == sent + 1);
}

TEST_CASE("packets that the peer may not have read are given back in order when the rail is left") {
  Rails rails;
  std::vector<Packet*> sent;
  for (const char* text : {"one", "two", "three"}) {
    sent.push_back(&rails.packet(text));
    REQUIRE(rails.here.send(*sent.back()));
  }
  Rails::read(rails.there);
  REQUIRE(rails.here.take_read() == sent[0]);

  CHECK(rails.here.take_unread() == sent[1]);
  CHECK(rails.here.take_unread() == sent[2]);
  CHECK(rails.here.take_unread() == nullptr);
  for (Packet* packet : sent) rails.pool.give_back(*packet);
}

TEST_CASE("a rail is over when the peer has ended it and its last record was read") {
  Rails rails;
  REQUIRE(rails.here.send(rails.packet("last")));
  CHECK_FALSE(rails.there.is_over());
  rails.here.end();
  CHECK_FALSE(rails.there.is_over());
  CHECK(Rails::read(rails.there) == "last");
  CHECK(rails.there.is_over());
  CHECK_FALSE(rails.here.is_over());
}

TEST_CASE("a peer that is about to block is woken for a packet, or does not block") {
  Rails rails;
  CHECK_FALSE(rails.there.prepare_to_block());
  REQUIRE(rails.here.send(rails.packet("one")));
  CHECK(rails.here.must_wake());
  CHECK(rails.there.prepare_to_block());
  rails.there.woke_up();
  CHECK_FALSE(rails.here.must_wake());
}

}  // namespace pullman::engine
