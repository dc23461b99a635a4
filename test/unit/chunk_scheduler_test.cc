#include "message/tx/chunk_scheduler.h"

#include <catch2/catch.hpp>
#include <deque>

#include "message/send_descriptor.h"

namespace pullman::message {
namespace {

constexpr std::uint32_t kEager = 16'384;
constexpr std::size_t kPacketBytes = 1472;

// A scheduler and sends for it, which are "cut" by saying so.
struct Scheduling {
  ~Scheduling() { scheduler.clear(); }

  Operation& add(std::uint64_t size, bool has_priority = false) {
    Request& request = requests.emplace_back();
    Operation& op = Operation::of(request);
    op.size = size;
    op.message = ++last_id;
    op.granted = std::min<std::uint64_t>(size, kEager);
    op.special.has_priority = has_priority;
    scheduler.start(op);
    return op;
  }
  void cut(Operation& op, std::uint64_t bytes) {
    op.sent += bytes;
    scheduler.note_cut(op);
  }
  bool grant(Operation& op, std::uint64_t limit) {
    return scheduler.handle_grant(op, limit, kEager);
  }
  // Its eager bytes are cut, and the rest is granted.
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
  Operation& op = sends.add(kEager);
  CHECK(&sends.scheduler.next() == &op);

  sends.cut(op, 1000);
  CHECK(stage_of(op) == SendStage::kEager);
  sends.cut(op, kEager - 1000);

  CHECK(stage_of(op) == SendStage::kSent);
  CHECK_FALSE(sends.scheduler.has_chunks());
}

TEST_CASE("what is left of a longer one awaits its grant, then is bulk") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEager);
  sends.cut(op, kEager);
  CHECK(stage_of(op) == SendStage::kAwaitingGrant);
  CHECK_FALSE(sends.scheduler.has_chunks());

  REQUIRE(sends.grant(op, 3 * kEager));

  CHECK(stage_of(op) == SendStage::kBulk);
  CHECK(sends.scheduler.bytes_left() == 2 * kEager);
  sends.cut(op, 2 * kEager);
  CHECK(stage_of(op) == SendStage::kSent);
}

TEST_CASE("a grant of no more than has been cut ends the message") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEager);
  sends.cut(op, kEager);

  REQUIRE(sends.grant(op, kEager));

  CHECK(stage_of(op) == SendStage::kSent);
}

TEST_CASE("a grant that contradicts what was sent is refused") {
  Scheduling sends;
  Operation& op = sends.add(3 * kEager);
  Operation& is_short = sends.add(100);

  CHECK_FALSE(sends.grant(op, 3 * kEager + 1));
  CHECK_FALSE(sends.grant(op, kEager - 1));
  CHECK_FALSE(sends.grant(is_short, 100));
  CHECK(stage_of(op) == SendStage::kEager);

  SECTION("a second one is ignored") {
    REQUIRE(sends.grant(op, 2 * kEager));
    CHECK(sends.grant(op, 3 * kEager));
    CHECK(op.granted == 2 * kEager);
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

TEST_CASE("a message that has begun makes way for what was granted") {
  Scheduling sends;
  Operation& granted = sends.add(3 * kEager);
  sends.start_bulk(granted);
  Operation& next = sends.add(3 * kEager);

  CHECK(&sends.scheduler.next() == &next);
  CHECK(sends.scheduler.yields(next));
  sends.cut(next, 2000);
  CHECK(&sends.scheduler.next() == &granted);
  CHECK(stage_of(next) == SendStage::kDeprioritised);

  SECTION("and goes on when that has left") {
    sends.cut(granted, 2 * kEager);
    CHECK(&sends.scheduler.next() == &next);
  }
  SECTION("but not if its eager bytes are all there is of it") {
    Operation& is_short = sends.add(5000);
    CHECK_FALSE(sends.scheduler.yields(is_short));
    sends.cut(is_short, 2000);
    CHECK(&sends.scheduler.next() == &is_short);
  }
}

TEST_CASE("a message with priority goes first") {
  Scheduling sends;
  sends.add(3 * kEager);
  Operation& first = sends.add(3 * kEager, true);

  CHECK(&sends.scheduler.next() == &first);
}

TEST_CASE("a message that is stopped is not cut any further") {
  Scheduling sends;
  Operation& op = sends.add(kEager);
  Operation& other = sends.add(kEager);
  CHECK(sends.scheduler.has_others(op));

  sends.scheduler.stop(op);

  CHECK(stage_of(op) == SendStage::kSent);
  CHECK(&sends.scheduler.next() == &other);
  CHECK_FALSE(sends.scheduler.has_others(other));
}

TEST_CASE("what is left is told in packets, of a few messages") {
  Scheduling sends;
  const std::size_t full = kPacketBytes - kChunkHeadBytes;
  sends.add(2 * full + 1);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kPacketBytes) == 3);
  CHECK_FALSE(sends.scheduler.several_fill(0, kPacketBytes));
  sends.add(full);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kPacketBytes) == 4);
  CHECK(sends.scheduler.several_fill(2, kPacketBytes));
  CHECK_FALSE(sends.scheduler.several_fill(3, kPacketBytes));

  for (int i = 0; i < 3; ++i) sends.add(full);

  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kPacketBytes) ==
        ChunkScheduler::kManyPackets);
}

TEST_CASE("bulk packets hold more of what is granted") {
  Scheduling sends;
  const std::size_t full = kPacketBytes - wire::kBulkHeadBytes;
  sends.start_bulk(sends.add(kEager + 4 * full));

  CHECK(sends.scheduler.packets_left(ChunkHeads::kBulk, kPacketBytes) == 4);
  CHECK(sends.scheduler.packets_left(ChunkHeads::kFull, kPacketBytes) == 5);
}

}  // namespace pullman::message
