#include "message/tx/chunk_cutter.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "message/send_descriptor.h"
#include "message/tx/cut_plan.h"

namespace pullman::message {
namespace {

using channel::Packet;
using channel::Run;

constexpr std::size_t kPacketBytes = 1472;
constexpr std::size_t kFull = kPacketBytes - kChunkHeadBytes;

// One send, all of which may be cut.
struct Cutting {
  explicit Cutting(std::size_t size) : bytes(size) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31);
    op.buffer = bytes.data();
    op.size = op.granted = size;
    op.message = 9;
  }

  Packet* cut(ChunkHeads heads = ChunkHeads::kFull) {
    return cut_chunk(op, heads, kPacketBytes, pool);
  }
  Run* run(const RunShape& shape) { return cut_run(op, shape, pool); }
  static wire::Frame head_of(const Packet& packet) {
    return wire::chunk_head(packet.bytes + wire::kHeaderBytes);
  }

  std::vector<std::byte> bytes;
  channel::PacketPool pool{128, kPacketBytes};
  Request request;
  Operation& op = Operation::of(request);
};

}  // namespace

TEST_CASE("a chunk's packet refers to the caller's bytes") {
  Cutting send(kFull + 100);

  Packet& first = *send.cut();
  Packet& last = *send.cut();

  CHECK(first.payload == send.bytes.data());
  CHECK(first.payload_bytes == kFull);
  CHECK(last.payload == send.bytes.data() + kFull);
  CHECK(last.payload_bytes == 100);
  CHECK(Cutting::head_of(last).offset == kFull);
  CHECK(Cutting::head_of(last).total == kFull + 100);
  CHECK(send.op.packets == 2);
  CHECK(send.op.sent == send.op.granted);
  for (Packet* packet : {&first, &last}) {
    CHECK(packet->message == &send.request);
    send.pool.give_back(*packet);
  }
}

TEST_CASE("bytes that lie in two places are copied where a chunk needs both") {
  Cutting send(2 * kFull);
  const std::span<const std::byte> all = send.bytes;
  const std::span<const std::byte> segments[] = {all.first(100), all.subspan(100)};
  make_room(send.op, 2);
  describe(send.op, {.segments = segments, .size = all.size()});

  Packet& first = *send.cut();
  Packet& second = *send.cut();

  CHECK(first.payload == first.end());
  CHECK(std::memcmp(first.payload, all.data(), kFull) == 0);
  CHECK(second.payload == all.data() + kFull);
  send.pool.give_back(first);
  send.pool.give_back(second);
}

TEST_CASE("only granted bytes leave in bulk packets") {
  Cutting send(4 * kFull);
  Packet& full = *send.cut(ChunkHeads::kBulk);
  CHECK_FALSE(full.is_bulk);

  set_stage(send.op, SendStage::kBulk);
  Packet& bulk = *send.cut(ChunkHeads::kBulk);

  CHECK(bulk.is_bulk);
  CHECK(bulk.payload_bytes == kPacketBytes - wire::kBulkHeadBytes);
  send.pool.give_back(full);
  send.pool.give_back(bulk);
}

TEST_CASE("without free packets nothing is cut") {
  Cutting send(100);
  std::vector<Packet*> taken;
  while (Packet* packet = send.pool.take(Packet::kSmallBytes)) taken.push_back(packet);

  CHECK(send.cut() == nullptr);

  CHECK(send.op.sent == 0);
  CHECK(send.op.packets == 0);
  for (Packet* packet : taken) send.pool.give_back(*packet);
}

TEST_CASE("a run takes all that is left, or as many chunks as it may") {
  Cutting send(5 * kFull);

  Run& first = *send.run({.max_chunks = 3, .packet_bytes = kPacketBytes});
  Run& second = *send.run({.max_chunks = 64, .packet_bytes = kPacketBytes});

  CHECK(first.count == 3);
  CHECK(second.count == 2);
  CHECK(send.op.packets == 5);
  CHECK(send.op.sent == 5 * kFull);
  CHECK(second.payload_of(1).data() == send.bytes.data() + 4 * kFull);
  send.pool.give_back(first);
  send.pool.give_back(second);
}

TEST_CASE("bytes too few for a run are left to a packet") {
  Cutting send(kFull);

  CHECK(send.run({.max_chunks = 64, .packet_bytes = kPacketBytes}) == nullptr);
  CHECK(send.op.sent == 0);
}

TEST_CASE("the last chunk of a burst is made as long as the others") {
  Cutting send(20 * kFull - 50);
  RunShape shape{.max_chunks = 64, .packet_bytes = kPacketBytes, .equal_lengths = true};

  SECTION("if another message follows") {
    shape.others_follow = true;
    Run& run = *send.run(shape);
    CHECK(run.overlap == 50);
    CHECK(run.last_bytes == kFull);
    send.pool.give_back(run);
  }
  SECTION("but keeps its own length if nothing follows") {
    Run& run = *send.run(shape);
    CHECK(run.overlap == 0);
    CHECK(run.last_bytes == kFull - 50);
    send.pool.give_back(run);
  }
}

TEST_CASE("a run that would split a message is not cut into a burst shared with others") {
  Cutting send(3 * kFull + kFull / 2);
  RunShape shape{
      .max_chunks = 3, .packet_bytes = kPacketBytes, .equal_lengths = true, .shares_burst = true};
  CHECK(would_split(send.op, 3, kPacketBytes));
  CHECK_FALSE(would_split(send.op, 4, kPacketBytes));

  CHECK(send.run(shape) == nullptr);

  shape.shares_burst = false;
  Run& run = *send.run(shape);
  CHECK(run.count == 3);
  send.pool.give_back(run);
}

TEST_CASE("what was cut before does not count when a message would be split") {
  Cutting send(3 * kFull + kFull / 2);
  send.op.sent = 2 * kFull;

  CHECK_FALSE(would_split(send.op, 2, kPacketBytes));
}

TEST_CASE("all chunks are full but the last, which has the rest") {
  const wire::Cut cut = plan_cut(2500, {.max_chunks = 64, .full = 1000});

  CHECK(cut.count == 3);
  CHECK(cut.each == 1000);
  CHECK(cut.last == 500);
}

TEST_CASE("equal chunks are shorter than full ones if the last would lack more than the limit") {
  const CutLimits limits{.max_chunks = 64, .full = 1000, .equal = true, .max_waste = 100};
  const wire::Cut even = plan_cut(2500, limits);
  CHECK(even.count == 3);
  CHECK(even.each == 834);
  CHECK(even.last == 832);

  const wire::Cut full = plan_cut(2950, limits);
  CHECK(full.each == 1000);
  CHECK(full.last == 950);
}

TEST_CASE("no chunk is shorter than receivers count on") {
  const CutLimits limits{.max_chunks = 64, .full = 1000, .equal = true};

  CHECK(plan_cut(1001, limits).each == (501 >= wire::kLeastChunk ? 501 : 1000));
}

TEST_CASE("a last chunk that lacks more than the limit stays short") {
  wire::Cut cut{.count = 3, .each = 1000, .last = 700};
  lengthen_last(cut, 299);
  CHECK(cut.last == 700);
  CHECK(cut.overlap == 0);

  lengthen_last(cut, 300);
  CHECK(cut.last == 1000);
  CHECK(cut.overlap == 300);
}

TEST_CASE("an empty message is cut into no chunks") {
  CHECK(plan_cut(0, {.max_chunks = 64, .full = 1000}).count == 0);
}

}  // namespace pullman::message
