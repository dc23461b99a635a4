// reliability/link.h: two links wired by hand. What arrives, what is lost, what is sent again.
#include "reliability/link.h"

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

#include "base/random.h"

namespace pullman::reliability {
namespace {

constexpr Duration us(std::int64_t n) {
  return std::chrono::microseconds(n);
}

// One end: a link and what it needs.
struct End {
  explicit End(PacketNumber first, std::uint32_t window = 64)
      : options{.window = window},
        shared{{hotel, rings, pool}, bitmaps},
        link(options, shared, first) {}
  ~End() {
    for (PacketNumber n = link.window().floor(); n < link.window().next(); ++n) {
      if (Packet* packet = link.find(n)) release_in_flight(*packet);
    }
    collect();
    drop_lost();
  }

  void release_in_flight(Packet& packet) {
    link.abandon(packet);
    pool.give_back(packet);
  }
  std::size_t collect() {
    std::size_t count = 0;
    for (; !link.acked().empty(); ++count) {
      Packet& packet = link.acked().front();
      link.acked().pop_front();
      pool.give_back(packet);
    }
    return count;
  }
  void drop_lost() {
    while (!link.lost().empty()) {
      Packet& packet = link.lost().front();
      link.lost().pop_front();
      pool.give_back(packet);
    }
  }
  // Sends a packet; returns its header as the other end reads it.
  wire::PacketHeader send(Instant now, ChannelKind channel = ChannelKind::kData) {
    return stamp(now, *pool.take(64), channel);
  }
  wire::PacketHeader stamp(Instant now, Packet& packet, ChannelKind channel = ChannelKind::kData) {
    packet.channel = channel;
    link.stamp(now, {1, 1}, 64, wire::PacketType::kSequenced, packet);
    wire::PacketHeader header;
    REQUIRE(wire::decode(packet.head(), header) == Verdict::kAccepted);
    return header;
  }
  // Retransmits the oldest lost packet.
  wire::PacketHeader resend(Instant now) {
    Packet& packet = link.lost().front();
    link.lost().pop_front();
    return stamp(now, packet);
  }
  Verdict take(Instant now, const wire::PacketHeader& header) {
    if (link.judge(header) != Arrival::kNew) {
      link.handle_redundant();
      return Verdict::kDuplicate;
    }
    link.handle_arrival(now, header);
    return Verdict::kAccepted;
  }
  // Delivers the other end's ACK alone here.
  Verdict take_ack_of(Instant now, End& other) { return take_ack_of(now, other, now); }
  Verdict take_ack_of(Instant now, End& other, Instant written_at, bool knows_hold = true) {
    std::byte bytes[Link::kAckBytes];
    const std::size_t length = other.link.write_ack(written_at, {1, 1}, credit, bytes);
    wire::PacketHeader header;
    REQUIRE(wire::decode({bytes, length}, header) == Verdict::kAccepted);
    if (!knows_hold) header.hold = wire::kHoldUnknown;
    wire::FrameReader reader({bytes + wire::kHeaderBytes, length - wire::kHeaderBytes});
    wire::Frame sack;
    return link.handle_ack(now, header, reader.next(sack) ? &sack : nullptr);
  }

  Hotel<Packet> hotel;
  WindowRings rings{4};
  Pool<ArrivalBitmap> bitmaps{4};
  channel::PacketPool pool{8192, 1472};
  LinkOptions options;
  LinkResources shared;
  Link link;
  std::uint16_t credit = 64;
};

struct Pair {
  Pair() {
    a.link.handle_hello(b.link.window().first(), 64);
    b.link.handle_hello(a.link.window().first(), 64);
  }
  Instant later(Duration by) { return now += by; }

  Instant now{std::chrono::seconds(1)};
  End a{(PacketNumber{9} << 32) - 2};
  End b{PacketNumber{3} << 32};
};

enum class Lost : std::uint8_t {
  kGone,  // it never arrives
  kLate,  // it arrives after it was sent again
};

// Sends two packets, of which the first is declared lost and retransmitted; the round trip is 400
// us. If it is late it arrives then, in `copies` copies. Returns how long beyond the round trip the
// loss was waited for.
Duration recovery(Pair& pair, Lost lost, int copies = 1) {
  const Instant sent = pair.now;
  const auto first = pair.a.send(sent);
  const auto second = pair.a.send(sent);
  pair.b.take(pair.later(us(400)), second);
  pair.a.take_ack_of(pair.now, pair.b);
  const Instant due = pair.a.link.next_loss_due();
  REQUIRE(due != kNever);
  pair.now = due;
  pair.a.link.handle_loss_due(due);
  REQUIRE(pair.a.link.lost().size() == 1);
  const auto again = pair.a.resend(pair.now);
  pair.b.take(pair.later(us(400)), again);
  for (int i = 0; lost == Lost::kLate && i < copies; ++i) pair.b.take(pair.now, first);
  pair.a.take_ack_of(pair.now, pair.b);
  pair.a.collect();
  return due - sent - us(400);
}

// Returns a packet that its sender has not sent yet.
wire::PacketHeader future_of(wire::PacketHeader header) {
  header.number += 5;
  header.floor_distance = 0;
  return header;
}

}  // namespace

TEST_CASE("an acked packet leaves the window and the hotel, and gives a round-trip sample") {
  Pair pair;
  const auto packet = pair.a.send(pair.now);
  CHECK(pair.a.hotel.guests() == 1);
  pair.b.take(pair.later(us(10)), packet);

  REQUIRE(pair.a.take_ack_of(pair.later(us(15)), pair.b) == Verdict::kAccepted);

  CHECK(pair.a.collect() == 1);
  CHECK(pair.a.hotel.guests() == 0);
  CHECK(pair.a.link.in_flight() == 0);
  CHECK(pair.a.rings.in_use() == 0);
  // 25 us less the 15 us that the ACK was held, in units of 128 ns.
  CHECK(pair.a.link.rtt().smoothed() - us(10) < Duration(128));
}

// Clocks are read when a turn begins; packets come later in it.
TEST_CASE("an ACK that seems to have taken less than it was held gives no sample") {
  Pair pair;
  for (const Duration held : {us(0), us(15)}) {
    const auto packet = pair.a.send(pair.now);
    pair.b.take(pair.later(us(10)), packet);
    REQUIRE(pair.a.take_ack_of(pair.now, pair.b, pair.now + held) == Verdict::kAccepted);
    CHECK(pair.a.collect() == 1);
    CHECK(pair.a.link.rtt().latest() == us(10));
    CHECK(pair.a.link.rtt().least() == us(10));
  }
}

TEST_CASE("a HELLO that seems to be answered in the instant it left gives no sample") {
  Pair pair;
  pair.a.send(pair.now);
  Packet* hello = pair.a.link.find(pair.a.link.window().floor());
  REQUIRE(hello != nullptr);
  const auto number = static_cast<std::uint32_t>(hello->number);
  pair.a.link.handle_answer(pair.now, *hello, number);
  CHECK_FALSE(pair.a.link.rtt().sampled());
  pair.a.link.handle_answer(pair.later(us(10)), *hello, number - 1);  // an earlier one
  CHECK_FALSE(pair.a.link.rtt().sampled());
  pair.a.link.handle_answer(pair.now, *hello, number);
  CHECK(pair.a.link.rtt().smoothed() == us(10));
}

TEST_CASE("until a packet gives a sample, the answer to the HELLO says that the path has a queue") {
  Pair pair;
  pair.b.take(pair.now, pair.a.send(pair.now));
  Packet* hello = pair.a.link.find(pair.a.link.window().floor());
  REQUIRE(hello != nullptr);
  const auto number = static_cast<std::uint32_t>(hello->number);
  pair.a.link.handle_answer(pair.later(us(2000)), *hello, number);
  const std::uint32_t before = pair.a.link.congestion_window();
  while (pair.a.link.in_flight() < before) pair.b.take(pair.now, pair.a.send(pair.now));

  pair.a.take_ack_of(pair.later(us(100)), pair.b, pair.now, false);

  CHECK(pair.a.link.congestion_window() < before);
}

TEST_CASE(
    "a packet is declared lost by a later one's ACK after the reordering window, not before") {
  Pair pair;
  const auto first = pair.a.send(pair.now);
  pair.b.take(pair.later(us(10)), first);
  pair.a.take_ack_of(pair.later(us(10)), pair.b);
  pair.a.collect();

  pair.a.send(pair.now);  // lost
  const auto third = pair.a.send(pair.now);
  pair.b.take(pair.later(us(10)), third);
  REQUIRE(pair.b.link.ack_need() == AckNeed::kNow);
  REQUIRE(pair.a.take_ack_of(pair.now, pair.b) == Verdict::kAccepted);

  CHECK(pair.a.collect() == 1);
  CHECK(pair.a.link.lost().empty());
  const Instant due = pair.a.link.next_loss_due();
  REQUIRE(due != kNever);
  pair.a.link.handle_loss_due(due - Duration(1));
  CHECK(pair.a.link.lost().empty());
  pair.a.link.handle_loss_due(due);
  CHECK(pair.a.link.lost().size() == 1);
  CHECK(pair.a.link.next_loss_due() == kNever);
}

// Returns the second packet's header.
wire::PacketHeader lose_the_first_of_two(Pair& pair) {
  pair.a.send(pair.now);  // lost
  const auto second = pair.a.send(pair.now);
  pair.b.take(pair.now, second);
  pair.a.take_ack_of(pair.later(us(100)), pair.b);
  pair.a.link.handle_loss_due(pair.later(us(1000)));
  REQUIRE(pair.a.link.lost().size() == 1);
  return second;
}

TEST_CASE("a retransmission has a new number, and its floor settles the old one, wire.md 3.1") {
  Pair pair;
  const auto second = lose_the_first_of_two(pair);

  Packet& packet = pair.a.link.lost().front();
  pair.a.link.lost().pop_front();
  const auto again = pair.a.stamp(pair.now, packet);

  CHECK(again.number == second.number + 1);
  CHECK(again.floor_distance == 0);
  CHECK(pair.b.take(pair.now, again) == Verdict::kAccepted);
  CHECK(pair.b.link.acks().next() == pair.a.link.window().next());
}

TEST_CASE(
    "a retransmission asks for its ACK, as packets behind it may wait for it alone, wire.md 6.2") {
  Pair pair;
  const auto second = lose_the_first_of_two(pair);

  CHECK_FALSE(second.has(wire::kFlagAckSoon));
  CHECK(pair.a.resend(pair.now).has(wire::kFlagAckSoon));
}

TEST_CASE("packets of the other channel prove no loss, wire.md 7.2") {
  Pair pair;
  pair.a.send(pair.now, ChannelKind::kData);
  const auto tiny = pair.a.send(pair.now, ChannelKind::kCommand);
  pair.b.take(pair.later(us(10)), tiny);
  pair.a.take_ack_of(pair.later(us(10)), pair.b);

  pair.a.link.handle_loss_due(pair.later(std::chrono::seconds(5)));

  CHECK(pair.a.link.lost().empty());
  CHECK(pair.a.link.next_loss_due() == kNever);
}

TEST_CASE("an ACK for a packet never sent is refused and changes nothing, wire.md 6.4") {
  Pair pair;
  const auto packet = pair.a.send(pair.now);
  pair.b.take(pair.now, packet);
  pair.b.take(pair.now, future_of(packet));

  CHECK(pair.a.take_ack_of(pair.now, pair.b) == Verdict::kBadAck);
  CHECK(pair.a.link.in_flight() == 1);
  CHECK(pair.a.collect() == 0);
}

TEST_CASE("an old ACK that arrives late changes nothing") {
  Pair pair;
  const auto first = pair.a.send(pair.now);
  pair.b.take(pair.now, first);
  std::byte old[Link::kAckBytes];
  const std::size_t length = pair.b.link.write_ack(pair.now, {1, 1}, 1, old);
  const auto second = pair.a.send(pair.now);
  pair.b.take(pair.now, second);
  pair.a.take_ack_of(pair.now, pair.b);
  REQUIRE(pair.a.collect() == 2);

  wire::PacketHeader header;
  REQUIRE(wire::decode({old, length}, header) == Verdict::kAccepted);
  CHECK(pair.a.link.handle_ack(pair.now, header, nullptr) == Verdict::kAccepted);
  CHECK(pair.a.collect() == 0);
}

TEST_CASE("a probe timeout sends one probe and declares nothing lost, wire.md 7.3") {
  Pair pair;
  pair.a.send(pair.now);
  pair.a.send(pair.now);
  const Instant due = pair.a.hotel.next_due();

  int probes = 0;
  while (Packet* packet = pair.a.hotel.evict(due)) {
    pair.a.link.handle_eviction(due, *packet);
    if (pair.a.link.take_probe()) ++probes;
  }

  CHECK(probes == 1);
  CHECK(pair.a.link.lost().empty());
  CHECK(pair.a.link.in_flight() == 2);
  CHECK(pair.a.hotel.guests() == 2);
  CHECK(pair.a.hotel.next_due() - due >= 2 * (due - pair.now) * 3 / 4);  // backed off
}

TEST_CASE("a loss that later packets show is told from one that only a probe shows") {
  Pair pair;
  pair.b.take(pair.now, pair.a.send(pair.now));
  pair.a.take_ack_of(pair.later(us(20)), pair.b);
  pair.a.send(pair.now);  // lost, and the next one is not
  pair.later(us(100));
  pair.b.take(pair.now, pair.a.send(pair.now));
  pair.a.take_ack_of(pair.later(us(20)), pair.b);
  REQUIRE(pair.a.link.packets_lost() == 1);
  CHECK(pair.a.link.lost_after_timeout() == 0);

  pair.a.send(pair.now);  // lost, and nothing follows
  pair.now = pair.a.hotel.next_due();
  while (Packet* packet = pair.a.hotel.evict(pair.now)) {
    pair.a.link.handle_eviction(pair.now, *packet);
  }
  REQUIRE(pair.a.link.take_probe());
  pair.later(us(100));
  Packet* probe = pair.a.pool.take(64);
  probe->is_probe = true;
  pair.b.take(pair.now, pair.a.stamp(pair.now, *probe));
  pair.a.take_ack_of(pair.later(us(20)), pair.b);

  REQUIRE(pair.a.link.packets_lost() == 2);
  CHECK(pair.a.link.lost_after_timeout() == 1);
}

TEST_CASE("a rail whose answers take fifty timeouts soon has a longer timeout than that") {
  Pair pair;
  pair.b.take(pair.now, pair.a.send(pair.now));
  pair.a.take_ack_of(pair.later(us(20)), pair.b);
  const Duration took = 50 * pair.a.link.timeout();
  const Duration before = pair.a.link.timeout();

  pair.a.link.handle_probe_acked(pair.later(took), pair.now - took);

  CHECK(pair.a.link.timeout() > 2 * before);
  CHECK(pair.a.link.timeout() < took / 2);  // the first may follow an answer that was lost
  for (int i = 0; i < 2; ++i) pair.a.link.handle_probe_acked(pair.later(took), pair.now - took);
  CHECK(pair.a.link.timeout() > took);
}

TEST_CASE("packets in flight are limited by the least of window, credit and congestion window") {
  Pair pair;
  pair.a.credit = 3;
  const auto first = pair.a.send(pair.now);
  pair.b.take(pair.now, first);
  pair.a.take_ack_of(pair.now, pair.b);

  for (int i = 0; i < 3; ++i) {
    REQUIRE(pair.a.link.may_send());
    pair.a.send(pair.now);
  }
  CHECK_FALSE(pair.a.link.may_send());
  CHECK(pair.a.link.has_space());  // a probe may leave
}

TEST_CASE("a spurious retransmission doubles the reordering window and is counted, wire.md 7.1") {
  Pair pair;
  CHECK(recovery(pair, Lost::kLate) == us(100));  // a quarter of the round trip
  CHECK(pair.a.link.spurious() == 1);

  for (const int quarters : {2, 4, 8, 16, 16}) {
    CHECK(recovery(pair, Lost::kLate) == us(100) * quarters);
  }
  CHECK(pair.a.link.spurious() == 6);
}

TEST_CASE("spurious retransmissions within one round trip double the reordering window once") {
  Pair pair;
  const auto first = pair.a.send(pair.now);
  const auto second = pair.a.send(pair.now);
  const auto third = pair.a.send(pair.now);
  pair.b.take(pair.later(us(400)), third);
  pair.a.take_ack_of(pair.now, pair.b);
  pair.a.link.handle_loss_due(pair.later(us(100)));
  REQUIRE(pair.a.link.lost().size() == 2);

  std::vector<wire::PacketHeader> again;
  while (!pair.a.link.lost().empty()) again.push_back(pair.a.resend(pair.now));
  pair.later(us(400));
  for (const auto& packet : again) pair.b.take(pair.now, packet);
  for (const auto& late : {first, second}) {
    pair.b.take(pair.now, late);
    pair.a.take_ack_of(pair.now, pair.b);
  }

  CHECK(pair.a.link.spurious() == 2);
  CHECK(recovery(pair, Lost::kGone) == us(200));
}

TEST_CASE("duplicates that the network makes do not widen the reordering window") {
  Pair pair;
  for (int i = 0; i < 10; ++i) {
    const auto packet = pair.a.send(pair.now);
    pair.b.take(pair.later(us(400)), packet);
    pair.b.take(pair.now, packet);
    pair.a.take_ack_of(pair.now, pair.b);
  }

  CHECK(pair.a.link.spurious() == 0);
  CHECK(recovery(pair, Lost::kGone) == us(100));
}

TEST_CASE("a duplicate long after a retransmission does not make that one spurious") {
  Pair pair;
  recovery(pair, Lost::kGone);
  const auto packet = pair.a.send(pair.later(std::chrono::seconds(1)));
  pair.b.take(pair.later(us(400)), packet);
  pair.b.take(pair.now, packet);
  pair.a.take_ack_of(pair.now, pair.b);

  CHECK(pair.a.link.spurious() == 0);
  CHECK(recovery(pair, Lost::kGone) == us(100));
}

TEST_CASE("no more retransmissions count as spurious than there were") {
  Pair pair;
  recovery(pair, Lost::kLate, 5);  // and four copies

  CHECK(pair.a.link.spurious() == 1);
}

TEST_CASE("after sixteen recoveries without a spurious one the reordering window is small again") {
  Pair pair;
  for (int i = 0; i < 4; ++i) recovery(pair, Lost::kLate);

  for (int i = 0; i < 16; ++i) REQUIRE(recovery(pair, Lost::kGone) == us(1600));

  CHECK(recovery(pair, Lost::kGone) == us(100));
  CHECK(recovery(pair, Lost::kLate) == us(100));
  CHECK(recovery(pair, Lost::kGone) == us(200));
}

// wire.md 7.5
TEST_CASE("a lost path MTU probe is no sign of congestion, unlike other lost packets") {
  const bool probes = GENERATE(true, false);
  Pair pair;
  for (int round = 0; round < 3; ++round) {
    std::vector<wire::PacketHeader> arriving;
    for (int i = 0; i < 16; ++i) {
      Packet& packet = *pair.a.pool.take(64);
      packet.is_path_probe = probes && i % 2 == 0;
      const auto header = pair.a.stamp(pair.now, packet);
      if (i % 2 != 0) arriving.push_back(header);
    }
    pair.later(us(20));
    for (const auto& header : arriving) pair.b.take(pair.now, header);
    pair.a.take_ack_of(pair.now, pair.b);
    pair.a.link.handle_loss_due(pair.later(us(900)));
    REQUIRE(pair.a.link.lost().size() == 8);
    pair.a.collect();
    pair.a.drop_lost();
  }

  CHECK((pair.a.link.congestion_window() >= 16) == probes);
}

TEST_CASE("packets lost together count as one recovery, not as sixteen") {
  Pair pair;
  recovery(pair, Lost::kLate);
  for (int i = 0; i < 20; ++i) pair.a.send(pair.now);
  const auto last = pair.a.send(pair.now);
  pair.b.take(pair.later(us(400)), last);
  pair.a.take_ack_of(pair.now, pair.b);
  pair.a.link.handle_loss_due(pair.later(us(200)));
  REQUIRE(pair.a.link.lost().size() == 20);
  std::vector<wire::PacketHeader> again;
  while (!pair.a.link.lost().empty()) again.push_back(pair.a.resend(pair.now));
  pair.later(us(400));
  for (const auto& packet : again) pair.b.take(pair.now, packet);
  pair.a.take_ack_of(pair.now, pair.b);

  CHECK(recovery(pair, Lost::kGone) == us(200));
}

TEST_CASE("before the first sample a third of the initial timeout stands for the round trip") {
  Pair pair;
  const Instant sent = pair.now;
  pair.a.send(sent);
  const auto second = pair.a.send(sent);
  pair.b.take(pair.later(us(400)), second);
  pair.a.take_ack_of(pair.later(us(9000)), pair.b);  // held too long to give a sample
  REQUIRE_FALSE(pair.a.link.rtt().sampled());

  CHECK(pair.a.link.lost().empty());
  CHECK(pair.a.link.next_loss_due() - sent == LinkOptions{}.pto_initial / 3 + us(10));
}

TEST_CASE("a reset of the path state forgets the sample of a packet held until its link was back") {
  Pair pair;
  const auto kept = pair.a.send(pair.now);
  pair.b.take(pair.later(std::chrono::milliseconds(500)), kept);
  pair.a.take_ack_of(pair.now, pair.b);
  const auto answered = pair.a.send(pair.now);
  pair.b.take(pair.later(us(400)), answered);
  pair.a.take_ack_of(pair.now, pair.b);
  REQUIRE(pair.a.link.rtt().smoothed() > std::chrono::milliseconds(400));

  pair.a.link.reset_path_state();

  CHECK(pair.a.link.rtt().smoothed() == us(400));
  CHECK(pair.a.link.rtt().least() == us(400));
  CHECK(pair.a.link.timeout() < std::chrono::milliseconds(5));
}

TEST_CASE("a round trip that was measured long ago gives way to a shorter one at once") {
  for (const Duration pause : {us(50'000), us(200'000)}) {
    Pair pair;
    const auto first = pair.a.send(pair.now);
    pair.b.take(pair.later(us(40'000)), first);
    pair.a.take_ack_of(pair.now, pair.b);
    pair.later(pause);
    const auto second = pair.a.send(pair.now);
    pair.b.take(pair.later(us(400)), second);
    pair.a.take_ack_of(pair.now, pair.b);

    CHECK((pair.a.link.rtt().smoothed() == us(400)) == (pause == us(200'000)));
  }
}

TEST_CASE("a round trip that was measured long ago does not give way to a longer one") {
  Pair pair;
  const auto first = pair.a.send(pair.now);
  pair.b.take(pair.later(us(400)), first);
  pair.a.take_ack_of(pair.now, pair.b);
  const auto second = pair.a.send(pair.later(us(150'000)));
  pair.b.take(pair.later(us(40'000)), second);
  pair.a.take_ack_of(pair.now, pair.b);

  CHECK(pair.a.link.rtt().smoothed() < us(6000));
}

TEST_CASE("an ACK that repeats the last one changes nothing; one with news is processed") {
  Pair pair;
  const auto first = pair.a.send(pair.now);
  pair.b.take(pair.now, first);
  pair.a.take_ack_of(pair.now, pair.b);
  REQUIRE(pair.a.collect() == 1);

  const auto second = pair.a.send(pair.now);
  CHECK(pair.a.take_ack_of(pair.now, pair.b) == Verdict::kAccepted);
  CHECK(pair.a.collect() == 0);
  CHECK(pair.a.link.in_flight() == 1);

  SECTION("more credit") {
    pair.a.credit = 1;
    pair.a.take_ack_of(pair.now, pair.b);
    REQUIRE_FALSE(pair.a.link.may_send());
    pair.a.credit = 2;
    pair.a.take_ack_of(pair.now, pair.b);
    CHECK(pair.a.link.may_send());
  }
  SECTION("more packets") {
    pair.b.take(pair.now, second);
    pair.a.take_ack_of(pair.now, pair.b);
    CHECK(pair.a.collect() == 1);
  }
  SECTION("packets beyond a gap") {
    const auto third = pair.a.send(pair.now);
    pair.b.take(pair.now, third);
    pair.a.take_ack_of(pair.now, pair.b);
    CHECK(pair.a.collect() == 1);
    CHECK(pair.a.link.in_flight() == 1);
  }
}

TEST_CASE("every order and loss of a window is recovered without a needless packet") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    Pair pair;
    std::size_t delivered = 0;
    std::size_t sent = 0;
    for (int turn = 0; turn < 2000 && delivered < 300; ++turn) {
      std::vector<wire::PacketHeader> wire;
      while (!pair.a.link.lost().empty() && pair.a.link.may_send()) {
        Packet& packet = pair.a.link.lost().front();
        pair.a.link.lost().pop_front();
        wire.push_back(pair.a.stamp(pair.now, packet));
      }
      while (sent < 300 && pair.a.link.may_send() && random.chance(800'000)) {
        wire.push_back(pair.a.send(pair.now));
        ++sent;
      }
      if (pair.a.hotel.next_due() <= pair.now) {
        while (Packet* packet = pair.a.hotel.evict(pair.now)) {
          pair.a.link.handle_eviction(pair.now, *packet);
        }
        if (pair.a.link.take_probe()) {
          Packet* probe = pair.a.pool.take(64);
          probe->is_probe = true;
          wire.push_back(pair.a.stamp(pair.now, *probe));
        }
      }
      pair.later(us(10));
      for (const auto& header : wire) {
        if (!random.chance(200'000)) pair.b.take(pair.now, header);
      }
      pair.later(us(10));
      if (!random.chance(200'000)) {
        REQUIRE(pair.a.take_ack_of(pair.now, pair.b) == Verdict::kAccepted);
      }
      pair.a.link.handle_loss_due(pair.now);
      while (!pair.a.link.acked().empty()) {
        Packet& packet = pair.a.link.acked().front();
        pair.a.link.acked().pop_front();
        if (!packet.is_probe) ++delivered;
        pair.a.pool.give_back(packet);
      }
      PacketQueue keep;
      while (!pair.a.link.lost().empty()) {
        Packet& packet = pair.a.link.lost().front();
        pair.a.link.lost().pop_front();
        if (packet.is_probe) {
          pair.a.pool.give_back(packet);
        } else {
          keep.push_back(packet);
        }
      }
      pair.a.link.lost().swap(keep);
      REQUIRE(pair.a.hotel.guests() == pair.a.link.in_flight());
      pair.later(us(400));
    }
    REQUIRE(delivered == 300);
    REQUIRE(pair.a.link.spurious() == 0);
  }
}

// The peer's turns take two milliseconds, the network no time.
TEST_CASE("packets that wait for a peer that does not poll are no congestion, wire.md 2.13") {
  const bool told = GENERATE(true, false);
  constexpr Duration kAway = std::chrono::microseconds(2100);
  const auto gap = wire::poll_gap_of(static_cast<std::uint64_t>(kAway.count()));
  Pair pair;
  for (int round = 0; round < 30; ++round) {
    std::vector<wire::PacketHeader> sent;
    while (pair.a.link.may_send()) sent.push_back(pair.a.send(pair.now));
    pair.later(round == 0 ? std::chrono::microseconds(50) : kAway);  // first, the path is short
    for (const auto& header : sent) {
      REQUIRE(pair.b.link.judge(header) == Arrival::kNew);
      pair.b.link.handle_arrival(pair.now, header, told ? gap : wire::PollGap::kNone);
    }
    pair.a.credit = 1000;
    REQUIRE(pair.a.take_ack_of(pair.now, pair.b) == Verdict::kAccepted);
    pair.a.collect();
  }
  INFO(pair.a.link.congestion_window());
  CHECK((pair.a.link.congestion_window() == 64) == told);  // the whole window
  CHECK(pair.a.link.rtt().smoothed() > kAway * 9 / 10);    // timeouts cover all of it
}

}  // namespace pullman::reliability
