#include "engine/local/local_way.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "channel/packet.h"

namespace pullman::engine {
namespace {

using channel::Packet;

constexpr std::size_t kPacketBytes = 1472;
constexpr shm::Secret kSecret{std::byte{1}};

std::string new_folder() {
  std::string name = "/dev/shm/pullman-test-XXXXXX";
  REQUIRE(mkdtemp(name.data()) != nullptr);
  return name;
}

// Both ends of a way, and packets of one of them.
struct Ways {
  ~Ways() {
    while (Packet* packet = here.take_unread()) pool.give_back(*packet);
    std::filesystem::remove_all(folder);
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
  static std::string read(LocalWay& way) {
    const auto frames = way.front();
    if (!frames) return "nothing";
    std::string text(reinterpret_cast<const char*>(frames->data()), frames->size());
    way.pop();
    return text;
  }

  std::string folder = new_folder();
  channel::PacketPool pool{256, kPacketBytes};
  LocalWay here{shm::Pair::create(kSecret, folder)};
  LocalWay there{shm::Pair::join(here.pair().name(), kSecret, folder)};
};

}  // namespace

TEST_CASE("what packets carry comes through memory in order, without their headers") {
  Ways ways;
  REQUIRE(ways.here.send(ways.packet("one")));
  REQUIRE(ways.here.send(ways.packet("head ", "and payload")));

  CHECK(Ways::read(ways.there) == "one");
  CHECK(Ways::read(ways.there) == "head and payload");
  CHECK(Ways::read(ways.there) == "nothing");
}

TEST_CASE("a packet is in flight until the peer has read its record") {
  Ways ways;
  Packet& first = ways.packet("one");
  Packet& second = ways.packet("two");
  REQUIRE(ways.here.send(first));
  REQUIRE(ways.here.send(second));
  CHECK(ways.here.take_read() == nullptr);

  Ways::read(ways.there);

  CHECK(ways.here.take_read() == &first);
  CHECK(ways.here.take_read() == nullptr);
  CHECK(ways.here.in_flight() == 1);
  ways.pool.give_back(first);
}

TEST_CASE("a packet for which the memory has no room stays its owner's until there is some") {
  Ways ways;
  const std::string payload(1400, 'x');
  std::size_t sent = 0;
  Packet* waiting = nullptr;
  for (;; ++sent) {
    waiting = &ways.packet("head", payload);
    if (!ways.here.send(*waiting)) break;
  }
  CHECK(ways.here.in_flight() == sent);
  CHECK(sent >= shm::Pair::kCapacity / 1500);

  std::size_t read = 0;
  for (; !ways.here.send(*waiting); ++read) REQUIRE(Ways::read(ways.there) != "nothing");
  CHECK(read <= 2);  // the rest of a lap may be too short
  CHECK(ways.here.in_flight() == sent + 1);
}

TEST_CASE("packets that the peer may not have read are given back in order when the way is left") {
  Ways ways;
  std::vector<Packet*> sent;
  for (const char* text : {"one", "two", "three"}) {
    sent.push_back(&ways.packet(text));
    REQUIRE(ways.here.send(*sent.back()));
  }
  Ways::read(ways.there);
  REQUIRE(ways.here.take_read() == sent[0]);

  CHECK(ways.here.take_unread() == sent[1]);
  CHECK(ways.here.take_unread() == sent[2]);
  CHECK(ways.here.take_unread() == nullptr);
  for (Packet* packet : sent) ways.pool.give_back(*packet);
}

TEST_CASE("a way is over when the peer has ended it and its last record was read") {
  Ways ways;
  REQUIRE(ways.here.send(ways.packet("last")));
  CHECK_FALSE(ways.there.is_over());
  ways.here.end();
  CHECK_FALSE(ways.there.is_over());
  CHECK(Ways::read(ways.there) == "last");
  CHECK(ways.there.is_over());
  CHECK_FALSE(ways.here.is_over());
}

TEST_CASE("a peer that is about to block is woken for a packet, or does not block") {
  Ways ways;
  CHECK_FALSE(ways.there.prepare_to_block());
  REQUIRE(ways.here.send(ways.packet("one")));
  CHECK(ways.here.must_wake());
  CHECK(ways.there.prepare_to_block());
  ways.there.woke_up();
  CHECK_FALSE(ways.here.must_wake());
}

}  // namespace pullman::engine
