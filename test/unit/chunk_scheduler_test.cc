#include "message/tx/chunk_scheduler.h"

#include <catch2/catch.hpp>
#include <deque>

#include "message/send_descriptor.h"

namespace pullman::message {
namespace {

constexpr std::uint32_t kEagerBytes = 16'384;
constexpr std::size_t kLongPacket = 1472;

// A scheduler and its sends; to cut is only to count the bytes.
struct Scheduling {
  ~Scheduling() { scheduler.clear(); }

  Operation& add(std::uint64_t size, bool has_priority = false) {
    Request& request = requests.emplace_back();
    Operation& op = Operation::of(request);
    op.size = size;
    op.message = ++last_id;
    op.granted = std::min<std::uint64_t>(size, kEagerBytes);
    op.special.has_priority = has_priority;
    scheduler.start(op);
    return op;
  }
  void cut(Operation& op, std::uint64_t bytes) {
    op.sent += bytes;
    scheduler.note_cut(op);
  }
  bool grant(Operation& op, std::uint64_t limit) {
    return scheduler.handle_grant(op, limit, kEagerBytes);
  }
  // Cuts the eager bytes and grants the rest.
  void start_bulk(Operation& op) {
    cut(op, op.granted - op.sent);
    REQUIRE(grant(op, op.size));
  }

  std::deque<Request> requests;
  MessageId last_id = 0;
  ChunkScheduler scheduler;
};

}  // namespace

TEST_CASE("a message of eager bytes only is sent when all of them are cut") {
  Scheduling sends;
  Operation& op = sends.add(kEagerBytes);
  CHECK(&sends.scheduler.next() == &op);

  sends.cut(op, 1000);
  CHECK(stage_of(op) == SendStage::kEager);
  sends.cut(op, kEagerBytes - 1000);

  CHECK(stage_of(op) == SendStage::kSent);
  CHECK_FALSE(sends.scheduler.has_chunks());
}

TEST_CASE("the rest of a longer message awaits its grant, then leaves as bulk") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEagerBytes);
  sends.cut(op, kEagerBytes);
  CHECK(stage_of(op) == SendStage::kAwaitingGrant);
  CHECK_FALSE(sends.scheduler.has_chunks());

  REQUIRE(sends.grant(op, 3 * kEagerBytes));

  CHECK(stage_of(op) == SendStage::kBulk);
  CHECK(sends.scheduler.bytes_left() == 2 * kEagerBytes);
  sends.cut(op, 2 * kEagerBytes);
  CHECK(stage_of(op) == SendStage::kSent);
}

TEST_CASE("a grant of no more than has been cut ends the message") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEagerBytes);
  sends.cut(op, kEagerBytes);

  REQUIRE(sends.grant(op, kEagerBytes));

  CHECK(stage_of(op) == SendStage::kSent);
}

TEST_CASE("a grant that contradicts what was sent is refused") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEagerBytes);
  Operation& is_short = sends.add(100);

  CHECK_FALSE(sends.grant(op, 3 * kEagerBytes + 1));
  CHECK_FALSE(sends.grant(op, kEagerBytes - 1));
  CHECK_FALSE(sends.grant(is_short, 100));
  CHECK(stage_of(op) == SendStage::kEager);

  SECTION("a second one is ignored") {
    REQUIRE(sends.grant(op, 2 * kEagerBytes));
    CHECK(sends.grant(op, 3 * kEagerBytes));
    CHECK(op.granted == 2 * kEagerBytes);
  }
}

TEST_CASE("an announced message that is granted leaves ahead of those that were sent after it") {
  Scheduling sends;
  Request request;
  Operation& announced = Operation::of(request);
  announced.size = 1000;
  announced.message = ++sends.last_id;
  announced.special.is_announced = true;
  sends.scheduler.await_grant(announced);
  CHECK_FALSE(sends.scheduler.has_chunks());
  sends.add(2000);
  Operation& ahead = sends.add(2000, true);

  REQUIRE(sends.grant(announced, 1000));

  CHECK(&sends.scheduler.next() == &ahead);
  sends.cut(ahead, 2000);
  CHECK(&sends.scheduler.next() == &announced);
  sends.cut(announced, 1000);
  CHECK(stage_of(announced) == SendStage::kSent);
}

TEST_CASE("a message that has begun makes way for granted bytes") {
  Scheduling sends;
  Operation& granted = sends.add(3 * kEagerBytes);
  sends.start_bulk(granted);
  Operation& next = sends.add(3 * kEagerBytes);

  CHECK(&sends.scheduler.next() == &next);
  CHECK(sends.scheduler.yields(next));
  sends.cut(next, 2000);
  CHECK(&sends.scheduler.next() == &granted);
  CHECK(stage_of(next) == SendStage::kDeprioritised);

  SECTION("and goes on when these have left") {
    sends.cut(granted, 2 * kEagerBytes);
    CHECK(&sends.scheduler.next() == &next);
  }
  SECTION("but not if all of it is eager bytes") {
    Operation& is_short = sends.add(5000);
    CHECK_FALSE(sends.scheduler.yields(is_short));
    sends.cut(is_short, 2000);
    CHECK(&sends.scheduler.next() == &is_short);
  }
}

TEST_CASE("a message with priority goes first") {
  Scheduling sends;
  sends.add(3 * kEagerBytes);
  Operation& first = sends.add(3 * kEagerBytes, true);

  CHECK(&sends.scheduler.next() == &first);
}

TEST_CASE("a message that is stopped is not cut any further") {
  Scheduling sends;
  Operation& op = sends.add(kEagerBytes);
  Operation& other = sends.add(kEagerBytes);
  CHECK(sends.scheduler.has_others(op));

  sends.scheduler.stop(op);

  CHECK(stage_of(op) == SendStage::kSent);
  CHECK(&sends.scheduler.next() == &other);
  CHECK_FALSE(sends.scheduler.has_others(other));
}

TEST_CASE("what is left is counted in packets, over a few messages only") {
  Scheduling sends;
  const std::size_t full = kLongPacket - kChunkHeadBytes;
  sends.add(2 * full + 1);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kLongPacket) == 3);
  CHECK_FALSE(sends.scheduler.several_fill(0, kLongPacket));
  sends.add(full);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kLongPacket) == 4);
  CHECK(sends.scheduler.several_fill(2, kLongPacket));
  CHECK_FALSE(sends.scheduler.several_fill(3, kLongPacket));

  for (int i = 0; i < 3; ++i) sends.add(full);

  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kLongPacket) ==
        ChunkScheduler::kManyPackets);
}

TEST_CASE("granted bytes take fewer packets as bulk") {
  Scheduling sends;
  const std::size_t full = kLongPacket - wire::kBulkHeadBytes;
  sends.start_bulk(sends.add(kEagerBytes + 4 * full));

  CHECK(sends.scheduler.packets_left(ChunkHeads::kBulk, kLongPacket) == 4);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kLongPacket) == 5);
}

}  // namespace pullman::message
