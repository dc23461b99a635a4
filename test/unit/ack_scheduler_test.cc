#include "engine/send/ack_scheduler.h"

#include <catch2/catch.hpp>

#include "engine_parts.h"

namespace pullman::engine {
namespace {

using std::chrono::microseconds;

constexpr PacketNumber kFirst = 300;  // of the peer's packets
constexpr microseconds kAckDelay{50};

// An ACK scheduler, and peers whose packets arrive.
struct Scheduled {
  Peer& add() {
    Peer& peer = peers.add();
    peer.phase = Phase::kConnected;
    peer.home.command_to = 7;
    peer.home.link.handle_hello(kFirst, 64);
    return peer;
  }
  static wire::PacketHeader packet(PacketNumber number, std::uint8_t flags) {
    wire::PacketHeader header;
    header.flags = flags;
    header.number = static_cast<std::uint32_t>(number);
    header.floor_distance = static_cast<std::uint16_t>(number - kFirst);
    return header;
  }
  void arrive(Peer& peer, PacketNumber number = kFirst, std::uint8_t flags = 0) {
    peer.home.link.handle_arrival(now, packet(number, flags));
    acks.schedule(now, peer.home);
  }
  // A packet that asks for its ACK arrives.
  void arrive_asking(Peer& peer) { arrive(peer, kFirst, wire::kFlagAckSoon); }
  void arrive_again(Peer& peer, PacketNumber number = kFirst) {
    peer.home.link.handle_duplicate(packet(number, 0));
    acks.schedule(now, peer.home);
  }
  // A packet leaves and piggybacks an ACK.
  void stamp(Peer& peer) {
    channel::Packet& packet = *peers.resources.packets.take(64);
    packet.used = wire::kHeaderBytes;
    peer.home.link.stamp(now, peer.theirs, 64, wire::PacketType::kSequenced, packet);
    acks.note_piggyback(peer.home);
    peer.home.link.abandon(packet);
    peers.resources.packets.give_back(packet);
  }
  void expire_after(Duration by) { acks.expire(now += by, peers.table()); }
  // Ends the turn; returns how many packets that sent.
  std::size_t sent_by_turn() {
    const std::size_t before = nics[0].command->sent.size();
    acks.send_due(now);
    return nics[0].command->sent.size() - before;
  }
  void deliver_message() { ++peers.resources.inbox_counters.messages; }

  FakeNics nics{1};
  FakePeers peers{nics.table};
  Instant now{std::chrono::seconds(1)};
  CreditAllocator credits{nics.table, now};
  AckScheduler acks{peers.resources.config, peers.resources.inbox_counters, peers.resources.stats,
                    credits};
};

DeferredAck deferred(Peer& peer, std::uint32_t cumulative) {
  DeferredAck ack;
  ack.rail = &peer.home;
  ack.header.cumulative = cumulative;
  return ack;
}

}  // namespace

TEST_CASE("an ACK that nothing carries leaves alone when the ACK delay is over, and not sooner") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive(peer);
  CHECK(scheduled.acks.next_due() == scheduled.now + kAckDelay);

  scheduled.expire_after(kAckDelay - Duration(1));
  CHECK_FALSE(scheduled.acks.any_due());
  CHECK(scheduled.sent_by_turn() == 0);

  scheduled.expire_after(Duration(1));
  CHECK(scheduled.acks.any_due());
  CHECK(scheduled.sent_by_turn() == 1);
  CHECK(scheduled.nics[0].command->sent[0].to == peer.home.command_to);
  CHECK_FALSE(scheduled.acks.any_due());
}

TEST_CASE("packets that follow do not put off the ACK of the first") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive(peer);
  const Instant due = scheduled.acks.next_due();
  scheduled.now += microseconds(30);
  scheduled.arrive(peer, kFirst + 1);

  CHECK(scheduled.acks.next_due() == due);
  scheduled.expire_after(microseconds(20));
  CHECK(scheduled.sent_by_turn() == 1);
}

TEST_CASE("an ACK says what arrived, and carries the peer's share of the NIC as credit") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  peer.theirs = {4, 9};
  scheduled.credits.note_heard(scheduled.now, peer);
  scheduled.credits.note_heard(scheduled.now, scheduled.add());
  scheduled.arrive_asking(peer);
  REQUIRE(scheduled.sent_by_turn() == 1);

  wire::PacketHeader header;
  REQUIRE(wire::decode(scheduled.nics[0].command->sent[0].bytes, header) ==
          wire::Verdict::kAccepted);
  CHECK(header.type == wire::PacketType::kControl);
  CHECK(header.to == peer.theirs);
  CHECK(header.cumulative == kFirst + 1);
  CHECK(header.credit == 256);
}

TEST_CASE("an ACK that is piggybacked stops the ACK timer, and none leaves alone") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive(peer);

  scheduled.stamp(peer);

  CHECK(scheduled.acks.next_due() == kNever);
  scheduled.expire_after(kAckDelay);
  CHECK(scheduled.sent_by_turn() == 0);
  CHECK(scheduled.peers.resources.stats.acks_piggybacked == 1);
  CHECK(scheduled.peers.resources.stats.acks_sent == 0);
}

TEST_CASE("while there is a gap an ACK leaves alone, although a packet piggybacks one") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive(peer, kFirst + 1);

  scheduled.stamp(peer);

  CHECK(scheduled.sent_by_turn() == 1);
  CHECK(scheduled.peers.resources.stats.acks_piggybacked == 0);
}

TEST_CASE("an ACK that was asked for leaves at the end of the turn, and once") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive_asking(peer);
  scheduled.acks.schedule(scheduled.now, peer.home);

  CHECK(scheduled.acks.any_due());
  CHECK(scheduled.sent_by_turn() == 1);
  CHECK(scheduled.sent_by_turn() == 0);
}

TEST_CASE("an ACK that is due may wait one turn if a message was delivered, and no longer") {
  Scheduled scheduled;
  scheduled.arrive_asking(scheduled.add());
  scheduled.deliver_message();
  CHECK(scheduled.sent_by_turn() == 0);
  CHECK(scheduled.acks.any_due());

  scheduled.deliver_message();
  CHECK(scheduled.sent_by_turn() == 1);
}

TEST_CASE("an ACK that waits for a program's answer is piggybacked on it") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive_asking(peer);
  scheduled.deliver_message();
  REQUIRE(scheduled.sent_by_turn() == 0);

  scheduled.stamp(peer);

  CHECK(scheduled.sent_by_turn() == 0);
  CHECK_FALSE(scheduled.acks.any_due());
}

TEST_CASE("the ACK of a duplicate does not wait for a program's answer") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  scheduled.arrive(peer);
  scheduled.arrive_again(peer);
  scheduled.deliver_message();

  CHECK(scheduled.sent_by_turn() == 1);
}

TEST_CASE("no ACK is sent alone to a peer that has not proved itself or has no destination yet") {
  Scheduled scheduled;
  Peer& answering = scheduled.add();
  answering.phase = Phase::kAnswering;
  Peer& unresolved = scheduled.add();
  unresolved.home.command_to = nic::kInvalidDestination;
  scheduled.arrive_asking(answering);
  scheduled.arrive_asking(unresolved);

  CHECK(scheduled.sent_by_turn() == 0);
  CHECK_FALSE(scheduled.acks.any_due());
}

TEST_CASE("an ACK for which the NIC has no room is dropped, as the next one repeats it") {
  Scheduled scheduled;
  scheduled.nics[0].command->room = 0;
  scheduled.arrive_asking(scheduled.add());
  CHECK(scheduled.sent_by_turn() == 0);

  scheduled.nics[0].command->room = 9;
  CHECK(scheduled.sent_by_turn() == 0);
  CHECK_FALSE(scheduled.acks.any_due());
}

TEST_CASE("an ACK equal to the deferred one, on the same rail, repeats it; other ACKs do not") {
  Scheduled scheduled;
  Peer& peer = scheduled.add();
  const Peer& other = scheduled.add();
  scheduled.acks.defer(deferred(peer, 41));

  CHECK(scheduled.acks.repeats_deferred(peer.home, deferred(peer, 41).header));
  CHECK_FALSE(scheduled.acks.repeats_deferred(peer.home, deferred(peer, 42).header));
  CHECK_FALSE(scheduled.acks.repeats_deferred(other.home, deferred(peer, 41).header));

  CHECK(&scheduled.acks.take_deferred() == &peer.home);
  CHECK_FALSE(scheduled.acks.has_deferred());
  CHECK_FALSE(scheduled.acks.repeats_deferred(peer.home, deferred(peer, 41).header));
}

TEST_CASE("a deferred ACK is owed if its message asked for one, until it is taken") {
  Scheduled scheduled;
  Peer& silent = scheduled.add();
  Peer& asks = scheduled.add();
  scheduled.arrive(silent);
  scheduled.arrive_asking(asks);
  CHECK_FALSE(scheduled.acks.deferred_owes());

  scheduled.acks.defer(deferred(silent, 41));
  CHECK_FALSE(scheduled.acks.deferred_owes());
  scheduled.acks.drop_deferred();

  scheduled.acks.defer(deferred(asks, 41));
  CHECK(scheduled.acks.deferred_owes());
  scheduled.acks.take_deferred();
  CHECK_FALSE(scheduled.acks.deferred_owes());
}

TEST_CASE("a rail that is removed has no ACK due, at once or later") {
  Scheduled scheduled;
  Peer& asks = scheduled.add();
  Peer& waits = scheduled.add();
  scheduled.arrive_asking(asks);
  scheduled.arrive(waits);

  scheduled.acks.forget(asks.home);
  scheduled.acks.forget(waits.home);

  CHECK_FALSE(scheduled.acks.any_due());
  CHECK(scheduled.acks.next_due() == kNever);
}

}  // namespace pullman::engine
