#include "message/tx/message_packer.h"

#include <catch2/catch.hpp>
#include <vector>

namespace pullman::message {
namespace {

constexpr std::size_t kPackedBytes = 1472;
constexpr std::uint32_t kPeerIndex = 7;

// A packer, and messages for it.
struct Packing {
  ~Packing() { packer.give_back_all(pool); }

  bool pack(std::size_t size) {
    if (!packer.reserve(wire::kMessageBytes + size, pool)) return false;
    packer.write({.tag = 1, .bytes = {bytes.data(), size}}, next_id++);
    return true;
  }
  bool span(std::size_t size) {
    MessagePacker::Span span;
    if (!packer.reserve(size, pool, span)) return false;
    packer.write({.tag = 1, .bytes = {bytes.data(), size}}, next_id++, span);
    return true;
  }
  // Takes the first packet and gives it back; returns the ids in it.
  std::vector<std::uint32_t> take() {
    std::vector<std::uint32_t> ids;
    Packet& packet = packer.take_first();
    MessagePacker::for_each_message(packet, [&](std::uint32_t id) { ids.push_back(id); });
    used = packet.used;
    counted = packet.messages;
    CHECK(packet.peer == kPeerIndex);
    pool.give_back(packet);
    return ids;
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(MessagePacker::kMaxCopied);
  PacketPool pool{128, kPackedBytes};
  MessagePacker packer{kPeerIndex, kPackedBytes};
  MessageId next_id = 100;
  std::size_t used = 0;
  std::uint32_t counted = 0;
};

using Ids = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("messages share a packet until one does not fit it") {
  Packing packing;
  for (int i = 0; i < 3; ++i) REQUIRE(packing.pack(400));
  CHECK(packing.packer.size() == 1);
  CHECK_FALSE(packing.packer.fits_last(400));
  REQUIRE(packing.pack(400));

  CHECK(packing.packer.size() == 2);
  CHECK(packing.take() == Ids{100, 101, 102});
  CHECK(packing.counted == 3);
  CHECK(packing.take() == Ids{103});
  CHECK(packing.packer.empty());
  CHECK(packing.pool.in_use() == 0);
}

TEST_CASE("messages whose ids are not consecutive are found by their frames, not by a count") {
  Packing packing;
  packing.pack(8);
  packing.next_id += 5;
  packing.pack(8);

  CHECK(packing.take() == Ids{100, 106});
  CHECK(packing.counted == Packet::kUncounted);
}

TEST_CASE("a long message fills the last packet and goes on in the next ones") {
  Packing packing;
  packing.pack(1000);
  REQUIRE(packing.span(2000));

  CHECK(packing.packer.size() == 3);
  CHECK(packing.take() == Ids{100, 101});
  CHECK(packing.used == kPackedBytes);
  CHECK(packing.take() == Ids{101});
  CHECK(packing.used == kPackedBytes);
  CHECK(packing.take() == Ids{101});
}

TEST_CASE("a packet with too little room for a message's beginning is padded to full length") {
  Packing packing;
  packing.pack(kPackedBytes - wire::kHeaderBytes - wire::kMessageBytes - 40);
  REQUIRE(packing.span(2000));

  CHECK(packing.take() == Ids{100});
  CHECK(packing.used == kPackedBytes);
}

TEST_CASE("no more than 64 packets are packed, and a message that does not fit takes none") {
  Packing packing;
  const std::size_t whole = kPackedBytes - wire::kHeaderBytes - wire::kMessageBytes;
  CHECK(packing.packer.fits_packet(whole));
  CHECK_FALSE(packing.packer.fits_packet(whole + 1));
  for (std::size_t i = 0; i + 1 < MessagePacker::kMaxQueued; ++i) REQUIRE(packing.pack(whole));

  CHECK_FALSE(packing.span(2000));
  CHECK(packing.pool.in_use() == MessagePacker::kMaxQueued - 1);
  CHECK(packing.pack(whole));
  CHECK_FALSE(packing.pack(8));
}

TEST_CASE("packets are filled to the length that every path carries") {
  Packing packing;
  packing.packer.set_packet_bytes(600);
  packing.pack(400);
  packing.pack(400);

  CHECK(packing.packer.size() == 2);
}

TEST_CASE("packets and chunks take turns while there are both") {
  Packing packing;
  CHECK_FALSE(packing.packer.is_next(true));
  packing.pack(8);

  CHECK(packing.packer.is_next(true));
  CHECK_FALSE(packing.packer.is_next(true));
  CHECK(packing.packer.is_next(true));
  CHECK(packing.packer.is_next(false));
  CHECK(packing.packer.is_next(false));
}

}  // namespace pullman::message
