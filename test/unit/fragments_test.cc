// message/tx/fragments.h: packets too long for their path leave in fragments.
#include "message/tx/fragments.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "pullman/request.h"
#include "wire/frame.h"

namespace pullman::message {
namespace {

using channel::Packet;
using channel::PacketPool;

constexpr std::size_t kLong = 8972;

struct Bench {
  ~Bench() { pool.give_back(packet); }

  void add_message(std::uint32_t id, std::size_t size) {
    std::byte* out = packet.end();
    wire::put_message(out, id, 7, size);
    for (std::size_t i = 0; i < size; ++i) out[wire::kMessageBytes + i] = byte_of(id, i);
    packet.used += static_cast<std::uint32_t>(wire::kMessageBytes + size);
  }
  static std::byte byte_of(std::uint32_t id, std::size_t i) {
    return static_cast<std::byte>(i * 31 + i / 256 + id);
  }

  // What a receiver has of a message.
  struct Got {
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
  };
  // Sends and delivers the packet until nothing of it is left. Returns the lengths of its
  // fragments.
  std::vector<std::size_t> deliver(std::size_t limit) {
    std::vector<std::size_t> lengths;
    for (;;) {
      fragment(packet, limit);
      lengths.push_back(packet.size());
      read();
      if (packet.rest == 0) return lengths;
      advance_fragment(packet);
    }
  }
  void read() {
    std::vector<std::byte> whole(packet.bytes, packet.bytes + packet.used);
    whole.insert(whole.end(), packet.payload, packet.payload + packet.payload_bytes);
    const auto body = std::span<const std::byte>(whole).subspan(wire::kHeaderBytes);
    REQUIRE(wire::well_formed(body));
    wire::FrameReader reader(body);
    wire::Frame frame;
    while (reader.next(frame)) {
      if (frame.type == wire::FrameType::kAllowance) ++others;
      if (frame.type == wire::FrameType::kMessage) frame.total = frame.data.size();
      if (frame.type != wire::FrameType::kMessage && frame.type != wire::FrameType::kChunk)
        continue;
      CHECK(frame.tag == 7);
      if (got.size() <= frame.id) got.resize(frame.id + 1);
      got[frame.id].bytes.resize(frame.total);
      std::copy(frame.data.begin(), frame.data.end(),
                got[frame.id].bytes.begin() + static_cast<std::ptrdiff_t>(frame.offset));
      got[frame.id].arrived += frame.data.size();
    }
  }
  bool whole(std::uint32_t id, std::size_t size) const {
    if (got.at(id).arrived != size || got[id].bytes.size() != size) return false;
    for (std::size_t i = 0; i < size; ++i) {
      if (got[id].bytes[i] != byte_of(id, i)) return false;
    }
    return true;
  }

  PacketPool pool{64, kLong + kFragmentRoom};
  Packet& packet = *pool.take(kLong);
  std::vector<Got> got;
  int others = 0;
};

TEST_CASE("a packet that is short enough stays as it is") {
  Bench bench;
  bench.add_message(0, 1000);
  const std::size_t size = bench.packet.size();

  fragment(bench.packet, size);

  CHECK(bench.packet.size() == size);
  CHECK(bench.packet.rest == 0);
  CHECK(bench.packet.payload == nullptr);
}

TEST_CASE("messages that share a packet leave in as many packets as it takes, whole if they fit") {
  Bench bench;
  for (std::uint32_t id = 0; id < 8; ++id) bench.add_message(id, 500);

  const auto lengths = bench.deliver(1200);

  CHECK(lengths ==
        std::vector<std::size_t>(4, wire::kHeaderBytes + 2 * (wire::kMessageBytes + 500)));
  for (std::uint32_t id = 0; id < 8; ++id) CHECK(bench.whole(id, 500));
}

TEST_CASE("a message that is too long becomes chunks, and what is behind it follows") {
  const std::size_t limit = GENERATE(576u, 700u, 1200u, 1400u, 4000u, 8971u);
  Bench bench;
  bench.add_message(0, 100);
  bench.add_message(
      1, kLong - wire::kHeaderBytes - 3 * wire::kMessageBytes - 100 - 300 - wire::kAllowanceBytes);
  bench.add_message(2, 300);
  bench.packet.used += static_cast<std::uint32_t>(wire::put_allowance(bench.packet.end(), 1, 1));
  REQUIRE(bench.packet.size() == kLong);
  const std::size_t middle =
      kLong - wire::kHeaderBytes - 3 * wire::kMessageBytes - 400 - wire::kAllowanceBytes;

  for (const std::size_t length : bench.deliver(limit)) CHECK(length <= limit);

  CHECK(bench.whole(0, 100));
  CHECK(bench.whole(1, middle));
  CHECK(bench.whole(2, 300));
  CHECK(bench.others == 1);
}

TEST_CASE("a message that fills its packet to the last byte becomes chunks") {
  const std::size_t limit = GENERATE(576u, 1200u, 8971u);
  Bench bench;
  const std::size_t size = kLong - wire::kHeaderBytes - wire::kMessageBytes;
  bench.add_message(0, size);

  bench.deliver(limit);

  CHECK(bench.whole(0, size));
}

// The rest of its message is in another packet.
TEST_CASE("a part of a message that is too long is cut up to its end, and the next frames follow") {
  const std::size_t limit = GENERATE(576u, 700u, 1200u, 1400u);
  constexpr std::size_t kTotal = 9000, kAt = 1000, kPart = 3000;
  Bench bench;
  Packet& packet = bench.packet;
  wire::put_chunk(packet.end(),
                  {.type = wire::FrameType::kChunk,
                   .id = 0,
                   .tag = 7,
                   .total = kTotal,
                   .offset = kAt,
                   .data = {}},
                  kPart);
  for (std::size_t i = 0; i < kPart; ++i)
    packet.end()[wire::kChunkBytes + i] = Bench::byte_of(0, kAt + i);
  packet.used += wire::kChunkBytes + kPart;
  bench.add_message(1, 300);
  packet.used += static_cast<std::uint32_t>(wire::put_allowance(packet.end(), 1, 1));

  for (const std::size_t length : bench.deliver(limit)) CHECK(length <= limit);

  CHECK(bench.got.at(0).arrived == kPart);
  for (std::size_t i = 0; i < kPart; ++i)
    REQUIRE(bench.got[0].bytes[kAt + i] == Bench::byte_of(0, kAt + i));
  CHECK(bench.whole(1, 300));
  CHECK(bench.others == 1);
}

// wire.md 4.4
TEST_CASE("a chunk of the user's memory is cut into chunks of 512 bytes and more") {
  const std::size_t limit = GENERATE(1088u, 1200u, 1201u, 1372u, 1472u, 6000u);
  const std::size_t length = GENERATE(1400u, 1500u, 1700u, 1800u, 2300u, 8908u);
  Bench bench;
  std::vector<std::byte> user(100'000);
  for (std::size_t i = 0; i < user.size(); ++i) user[i] = Bench::byte_of(0, i);
  Packet& packet = bench.packet;
  const wire::Frame head{.type = wire::FrameType::kChunk,
                         .id = 0,
                         .tag = 7,
                         .total = user.size(),
                         .offset = 5000,
                         .data = {}};
  packet.used += static_cast<std::uint32_t>(wire::put_chunk(packet.end(), head, length));
  packet.payload = user.data() + 5000;
  packet.payload_bytes = static_cast<std::uint32_t>(length);
  Request request;
  packet.message = &request;

  const auto lengths = bench.deliver(limit);

  for (const std::size_t bytes : lengths) {
    CHECK(bytes <= limit);
    CHECK(bytes >= wire::kHeaderBytes + wire::kChunkBytes + 512);
  }
  CHECK(bench.got[0].arrived == length);
  CHECK(std::memcmp(&bench.got[0].bytes[5000], &user[5000], length) == 0);
}

TEST_CASE("a fragment that is lost can be cut again, and the rest with it") {
  Bench bench;
  bench.add_message(0, 8000);
  fragment(bench.packet, 4000);
  advance_fragment(bench.packet);

  fragment(bench.packet, 1400);
  fragment(bench.packet, 576);
  bench.deliver(576);

  const std::size_t first = 4000 - wire::kHeaderBytes - wire::kChunkBytes;
  CHECK(bench.got[0].arrived == 8000 - first);
}

}  // namespace
}  // namespace pullman::message
