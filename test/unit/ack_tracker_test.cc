// reliability/ack_tracker.h: what has arrived, and when to acknowledge it (wire.md 3.3, 6).
#include "reliability/ack_tracker.h"

#include <catch2/catch.hpp>
#include <set>

#include "base/random.h"
#include "wire/frame.h"

namespace pullman::reliability {
namespace {

constexpr PacketNumber kFirst = (PacketNumber{5} << 32) - 3;  // wraps soon

struct Receiver {
  explicit Receiver(PacketNumber first = kFirst, std::uint32_t packets_per_ack = 4)
      : tracker(bitmaps, packets_per_ack) {
    tracker.start(first);
  }

  static wire::PacketHeader header(PacketNumber number, std::uint16_t floor_distance) {
    wire::PacketHeader header;
    header.number = low32(number);
    header.floor_distance = floor_distance;
    return header;
  }
  Arrival arrive(PacketNumber number, std::uint16_t floor_distance) {
    const auto packet = header(number, floor_distance);
    const Arrival arrival = tracker.judge(packet);
    if (arrival == Arrival::kNew) tracker.note(now, packet);
    return arrival;
  }
  // The numbers beyond the cumulative ack that the ACK reports.
  std::set<PacketNumber> sacked() {
    wire::PacketHeader ack;
    std::byte bytes[AckTracker::kMaxSackBytes];
    const std::size_t length = tracker.write_alone(now, ack, bytes);
    std::set<PacketNumber> numbers;
    wire::FrameReader reader({bytes, length});
    wire::Frame frame;
    if (!reader.next(frame)) return numbers;
    const PacketNumber first = expand(frame.id, tracker.next());
    for (std::size_t i = 0; i < frame.data.size() * 8; ++i) {
      if (wire::sack_word(frame.data, i / 64) >> (i % 64) & 1) numbers.insert(first + i);
    }
    return numbers;
  }

  Pool<ArrivalBitmap> bitmaps{1};
  AckTracker tracker;
  Instant now{std::chrono::milliseconds(1)};
};

}  // namespace

TEST_CASE("packets in order advance the cumulative ack, across the wrap") {
  Receiver receiver;
  for (PacketNumber n = kFirst; n < kFirst + 10; ++n) CHECK(receiver.arrive(n, 0) == Arrival::kNew);

  CHECK(receiver.tracker.next() == kFirst + 10);
  CHECK_FALSE(receiver.tracker.has_gap());
  CHECK(receiver.sacked().empty());
}

TEST_CASE("numbering may start anywhere") {
  for (PacketNumber start = (PacketNumber{1} << 32); start < (PacketNumber{1} << 32) + 65536;
       start += 61) {
    Receiver receiver(start);
    REQUIRE(receiver.arrive(start + 2, 2) == Arrival::kNew);
    REQUIRE(receiver.arrive(start, 0) == Arrival::kNew);
    REQUIRE(receiver.arrive(start + 1, 0) == Arrival::kNew);
    REQUIRE(receiver.tracker.next() == start + 3);
  }
}

TEST_CASE("a past or repeated packet is a duplicate; one far ahead is new") {
  Receiver receiver;
  receiver.arrive(kFirst, 0);
  receiver.arrive(kFirst + 5, 4);

  CHECK(receiver.arrive(kFirst, 0) == Arrival::kDuplicate);
  CHECK(receiver.arrive(kFirst + 5, 4) == Arrival::kDuplicate);
  CHECK(receiver.arrive(kFirst - 1, 0) == Arrival::kDuplicate);
  CHECK(receiver.arrive(kFirst + 1 + 4096, 4095) ==
        Arrival::kNew);  // its floor settles all numbers before it
}

TEST_CASE("a packet one window ahead settles the numbers before it as lost") {
  Receiver receiver;
  receiver.arrive(kFirst, 0);

  CHECK(receiver.arrive(kFirst + 1 + 4095, 4095) == Arrival::kNew);
  CHECK(receiver.arrive(kFirst + 1 + 4096, 0) == Arrival::kNew);  // all before it are settled
  CHECK(receiver.tracker.next() == kFirst + 1 + 4097);
}

// The last packet of a message alone asks, and may overtake the others on another channel.
TEST_CASE("packets overtaken by one that asks for its ACK are acked soon, too, wire.md 6.2") {
  const bool asks = GENERATE(false, true);
  Receiver receiver;
  receiver.arrive(kFirst, 0);
  wire::PacketHeader last = Receiver::header(kFirst + 3, 0);
  if (asks) last.flags = wire::kFlagAckSoon;
  last.floor_distance = 3;
  receiver.tracker.note(receiver.now, last);
  REQUIRE(receiver.tracker.need() == AckNeed::kNow);
  receiver.sacked();

  receiver.arrive(kFirst + 1, 1);
  CHECK(receiver.tracker.need() == AckNeed::kDelayed);
  receiver.arrive(kFirst + 2, 2);
  CHECK_FALSE(receiver.tracker.has_gap());
  CHECK(receiver.tracker.need() == (asks ? AckNeed::kEnough : AckNeed::kDelayed));
  receiver.sacked();
  receiver.arrive(kFirst + 4, 0);
  CHECK(receiver.tracker.need() == AckNeed::kDelayed);
}

TEST_CASE("the sender's floor settles holes that will never be filled, wire.md 3.3") {
  Receiver receiver;
  receiver.arrive(kFirst, 0);
  receiver.arrive(kFirst + 2, 1);
  receiver.arrive(kFirst + 4, 3);
  REQUIRE(receiver.tracker.next() == kFirst + 1);

  receiver.arrive(kFirst + 5, 2);

  CHECK(receiver.tracker.next() == kFirst + 3);
  CHECK(receiver.sacked() == std::set<PacketNumber>{kFirst + 4, kFirst + 5});
  receiver.arrive(kFirst + 6, 0);
  CHECK(receiver.tracker.next() == kFirst + 7);
  CHECK_FALSE(receiver.tracker.has_gap());
  CHECK(receiver.bitmaps.in_use() == 0);
  CHECK(receiver.arrive(kFirst + 1, 0) == Arrival::kDuplicate);  // it came after it was settled
}

TEST_CASE("the ACK of packets in order is delayed, and due with every Nth packet, wire.md 6.2") {
  Receiver receiver;
  CHECK(receiver.tracker.need() == AckNeed::kNone);
  for (int i = 0; i < 3; ++i) {
    receiver.arrive(kFirst + static_cast<unsigned>(i), 0);
    CHECK(receiver.tracker.need() == AckNeed::kDelayed);
  }
  receiver.arrive(kFirst + 3, 0);
  CHECK(receiver.tracker.need() == AckNeed::kEnough);

  wire::PacketHeader packet;
  receiver.tracker.piggyback(receiver.now, packet);

  CHECK(receiver.tracker.need() == AckNeed::kNone);
  CHECK(packet.cumulative == low32(kFirst + 4));
  CHECK(packet.has(wire::kFlagAck));
}

TEST_CASE("a new gap, a late packet and a PING need an ACK at once, wire.md 6.2") {
  Receiver receiver;
  SECTION("gap") {
    receiver.arrive(kFirst + 1, 1);
  }
  SECTION("late packet") {
    receiver.tracker.note_late();
  }
  SECTION("ping") {
    receiver.tracker.ask_now();
  }
  CHECK(receiver.tracker.need() == AckNeed::kNow);

  receiver.arrive(kFirst, 0);  // a packet in order cancels no need

  CHECK(receiver.tracker.need() == AckNeed::kNow);
}

TEST_CASE("while there is a gap, four packets at most are acked at once, wire.md 6.2") {
  const auto [per_ack, enough] = GENERATE(table<std::uint32_t, std::uint16_t>({{64, 4}, {3, 3}}));
  Receiver receiver(kFirst, per_ack);
  receiver.arrive(kFirst + 1, 1);
  receiver.sacked();
  REQUIRE(receiver.tracker.need() == AckNeed::kNone);

  for (std::uint16_t n = 1; n < enough; ++n) {
    receiver.arrive(kFirst + 1 + n, static_cast<std::uint16_t>(1 + n));
    CHECK(receiver.tracker.need() == AckNeed::kDelayed);
  }
  receiver.arrive(kFirst + 1 + enough, static_cast<std::uint16_t>(1 + enough));

  CHECK(receiver.tracker.need() == AckNeed::kNow);
}

TEST_CASE(
    "a packet that asks for its ACK is acked soon, alone or at the end of a run, wire.md 6.2") {
  Receiver receiver(kFirst, 64);
  auto packet = Receiver::header(kFirst, 0);
  packet.flags |= wire::kFlagAckSoon;
  SECTION("alone") {
    receiver.tracker.note(receiver.now, packet);
    CHECK(receiver.tracker.need() == AckNeed::kEnough);
  }
  SECTION("at the end of a run") {
    packet.number += 2;
    receiver.tracker.note_run(receiver.now, packet, 3);
    CHECK(receiver.tracker.need() == AckNeed::kEnough);
  }
  SECTION("behind a gap its ACK does not wait to be piggybacked") {
    receiver.arrive(kFirst + 1, 1);
    receiver.sacked();
    packet = Receiver::header(kFirst + 2, 2);
    packet.flags |= wire::kFlagAckSoon;
    receiver.tracker.note(receiver.now, packet);
    CHECK(receiver.tracker.need() == AckNeed::kNow);
  }
}

TEST_CASE("while there is a gap, a piggybacked ACK does not replace the ACK that is due") {
  Receiver receiver;
  receiver.arrive(kFirst + 1, 1);

  wire::PacketHeader packet;
  receiver.tracker.piggyback(receiver.now, packet);

  CHECK(receiver.tracker.need() == AckNeed::kNow);
  CHECK(packet.hold == wire::kHoldUnknown);
  CHECK(receiver.sacked() == std::set<PacketNumber>{kFirst + 1});
  CHECK(receiver.tracker.need() == AckNeed::kNone);
}

TEST_CASE("the hold time counts from the highest packet, wire.md 2.8") {
  Receiver receiver;
  receiver.arrive(kFirst, 0);
  receiver.now += std::chrono::microseconds(64);

  wire::PacketHeader ack;
  receiver.tracker.piggyback(receiver.now, ack);

  CHECK(ack.hold * wire::kHoldUnitNs == 64'000);
}

TEST_CASE("the hold time of a packet noted late counts from its arrival, wire.md 2.8") {
  Receiver receiver;
  const Instant came = receiver.now;
  receiver.now += std::chrono::microseconds(640);
  receiver.tracker.note(came, Receiver::header(kFirst, 0));

  wire::PacketHeader ack;
  receiver.tracker.piggyback(receiver.now, ack);

  CHECK(ack.hold * wire::kHoldUnitNs == 640'000);
}

TEST_CASE("late packets are counted and reported to the sender, wire.md 2.7") {
  Receiver receiver;
  receiver.tracker.note_late();
  receiver.tracker.note_late();
  wire::PacketHeader ack;
  receiver.tracker.piggyback(receiver.now, ack);
  CHECK(ack.late == 2);
}

TEST_CASE(
    "a copy of a packet that arrived is not late; a packet settled before it came is, wire.md "
    "2.7") {
  Receiver receiver;
  const auto late = [&](PacketNumber number) {
    REQUIRE(receiver.tracker.judge(Receiver::header(number, 0)) == Arrival::kDuplicate);
    wire::PacketHeader ack;
    receiver.tracker.piggyback(receiver.now, ack);
    const std::uint16_t before = ack.late;
    receiver.tracker.note_duplicate(Receiver::header(number, 0));
    CHECK(receiver.tracker.need() == AckNeed::kNow);
    receiver.tracker.piggyback(receiver.now, ack);
    return ack.late - before;
  };
  receiver.arrive(kFirst, 0);
  CHECK(late(kFirst) == 0);
  receiver.arrive(kFirst + 2, 1);
  receiver.arrive(kFirst + 3, 2);
  CHECK(late(kFirst + 2) == 0);  // beyond a gap

  SECTION("settled together with numbers beyond it") {
    receiver.arrive(kFirst + 5, 2);
    CHECK(receiver.tracker.next() == kFirst + 4);
  }
  SECTION("settled together with all before") {
    receiver.arrive(kFirst + 4, 0);
    CHECK(receiver.tracker.next() == kFirst + 5);
  }
  CHECK(late(kFirst + 1) == 1);
  CHECK(late(kFirst + 3) == 0);
}

TEST_CASE("numbers settled beyond the last arrival count as not arrived, wire.md 2.7") {
  Receiver receiver;
  receiver.arrive(kFirst, 0);
  receiver.arrive(kFirst + 3, 0);

  receiver.tracker.note_duplicate(Receiver::header(kFirst + 3, 0));
  receiver.tracker.note_duplicate(Receiver::header(kFirst + 2, 0));

  wire::PacketHeader ack;
  receiver.tracker.piggyback(receiver.now, ack);
  CHECK(ack.late == 1);
}

TEST_CASE("without memory for a gap, a packet that would open one counts as lost") {
  Receiver receiver;
  REQUIRE(receiver.bitmaps.take() != nullptr);
  CHECK(receiver.arrive(kFirst + 1, 1) == Arrival::kOutside);
  CHECK(receiver.arrive(kFirst, 0) == Arrival::kNew);
}

TEST_CASE("the SACK of a full window reports no packet twice, wire.md 4.7") {
  Receiver receiver;  // kFirst is not a multiple of 64: both ends of the SACK share a word

  receiver.arrive(kFirst + 1, 1);
  receiver.arrive(kFirst + 2, 2);
  receiver.arrive(kFirst + 4095, 4095);

  CHECK(receiver.sacked() == std::set<PacketNumber>{kFirst + 1, kFirst + 2, kFirst + 4095});
}

TEST_CASE("a run of packets is noted as its packets one by one would be") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Receiver each;
    Receiver run;
    PacketNumber next = kFirst;
    for (int i = 0; i < 20; ++i) {
      const auto count = static_cast<std::uint32_t>(1 + random.below(60));
      std::uint64_t distance = random.below(600);
      for (std::uint32_t n = 0; n < count; ++n) {
        if (n > 0) distance = random.below(8) == 0 ? random.below(distance + 2) : distance + 1;
        each.arrive(next++, static_cast<std::uint16_t>(distance));
      }
      const auto last = Receiver::header(next - 1, static_cast<std::uint16_t>(distance));
      run.tracker.note_run(run.now, last, count);

      REQUIRE(run.tracker.next() == next);
      REQUIRE(run.tracker.need() == each.tracker.need());
      each.now = run.now += std::chrono::microseconds(random.below(50));
      wire::PacketHeader ack_each;
      wire::PacketHeader ack_run;
      if (random.below(3) == 0) continue;
      each.tracker.piggyback(each.now, ack_each);
      run.tracker.piggyback(run.now, ack_run);
      REQUIRE(ack_run.cumulative == ack_each.cumulative);
      REQUIRE(ack_run.hold == ack_each.hold);
    }
    // Both judge packets that arrive out of order afterwards alike.
    REQUIRE(each.arrive(next + 2, 2) == run.arrive(next + 2, 2));
    REQUIRE(run.sacked() == each.sacked());
  }
}

TEST_CASE("an ACK reports the poll gap before its newest packet, wire.md 2.13") {
  Receiver receiver;
  const auto gap_told = [&] {
    wire::PacketHeader ack;
    receiver.tracker.piggyback(receiver.now, ack);
    return static_cast<int>(ack.poll_gap);
  };
  const auto arrive = [&](PacketNumber number, int gap) {
    receiver.tracker.note(receiver.now, Receiver::header(number, 0),
                          static_cast<wire::PollGap>(gap));
  };
  arrive(kFirst, 5);
  CHECK(gap_told() == 5);

  arrive(kFirst + 2, 7);
  arrive(kFirst + 1, 2);  // older: the newest packet gives the RTT sample
  CHECK(gap_told() == 7);

  arrive(kFirst + 3, 0);
  CHECK(gap_told() == 0);
}

TEST_CASE("any order of arrival is reported as a set would report it") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Receiver receiver;
    std::set<PacketNumber> arrived;
    PacketNumber next = kFirst;
    for (int i = 0; i < 400; ++i) {
      const PacketNumber number = next + random.below(90);
      const bool known = number < next || arrived.count(number) != 0;
      const auto distance = static_cast<std::uint16_t>(number - next);  // nothing settled yet
      REQUIRE((receiver.arrive(number, distance) == Arrival::kDuplicate) == known);
      arrived.insert(number);
      while (arrived.count(next) != 0) arrived.erase(next++);
      REQUIRE(receiver.tracker.next() == next);
      REQUIRE(receiver.sacked() == arrived);
    }
  }
}

}  // namespace pullman::reliability
