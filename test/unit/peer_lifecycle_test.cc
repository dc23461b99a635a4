#include "engine/session/peer_lifecycle.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "lifecycle_parts.h"

namespace pullman::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPeerTimeout{8};
constexpr milliseconds kLook{300};

Config config() {
  Config config = FakePeers::few();
  config.peer_timeout = kPeerTimeout;
  return config;
}

struct Lives : LifecycleParts {
  Lives() : LifecycleParts(config()) {}
  // Adds a peer that we called and that has sent nothing.
  Peer& call() {
    Peer& peer = peers.add();
    peer.phase = Phase::kCalling;
    peer.command_address = ipv4(20);
    peers.table().index_address(peer);
    peer.heard_at = peer.news_at = now;
    return peer;
  }
  Peer& connect() {
    Peer& peer = call();
    peer.introduced = true;
    peer.theirs = {4, 9};
    peer.home.command_to = 7;
    peer.home.data_to = 8;
    peer.home.link.handle_hello(300, 64);
    PeerLifecycle::set_phase(peer, Phase::kConnected, "test");
    return peer;
  }
  // Sends a packet that the peer does not acknowledge.
  channel::Packet& send(Peer& peer) {
    channel::Packet& packet = *peer.outbox.control_packet(100);
    packet.used = wire::kHeaderBytes + static_cast<std::uint32_t>(wire::put_ping(packet.end()));
    sender.post(now, peer.home, packet, data(peer.home), wire::PacketType::kSequenced);
    return packet;
  }
  void acknowledge(channel::Packet& packet, Peer& peer) {
    peer.home.link.abandon(packet);
    withdraw(peer.home, packet);
    peers.resources.packets.give_back(packet);
  }
  // Returns false if no alarm is set.
  bool handle_next_alarm(Duration late = {}) {
    if (alarms().next_due() == kNever) return false;
    now = alarms().next_due() + late;
    Timer* timer = alarms().evict(now);
    REQUIRE(timer != nullptr);
    lifecycle.handle_alarm(now, *peers.table().at(timer->peer));
    return true;
  }
  // Returns how long that took.
  Duration wait_for_end(const Peer& peer) {
    const Instant began = now;
    while (peer.phase != Phase::kGone && handle_next_alarm()) {
    }
    REQUIRE(peer.phase == Phase::kGone);
    return now - began;
  }
};

void defer_ack(Lives& lives, Peer& peer) {
  DeferredAck ack;
  ack.rail = &peer.home;
  lives.acks.defer(ack);
}

// Runs the action in a process of its own; returns whether it aborts.
bool aborts(void (*action)()) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    action();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

TEST_CASE("a phase that goes back, or is set again, aborts the program") {
  CHECK(aborts([] {
    Lives lives;
    PeerLifecycle::set_phase(lives.connect(), Phase::kCalling, "back");
  }));
  CHECK(aborts([] {
    Lives lives;
    PeerLifecycle::set_phase(lives.connect(), Phase::kConnected, "again");
  }));
  CHECK_FALSE(aborts([] {
    Lives lives;
    PeerLifecycle::set_phase(lives.connect(), Phase::kClosing, "forward");
  }));
}

TEST_CASE("a connected peer whose HELLO is missing is not consistent") {
  Lives lives;
  Peer& peer = lives.call();
  CHECK(is_consistent(peer));
  PeerLifecycle::set_phase(peer, Phase::kConnected, "too soon");
  CHECK_FALSE(is_consistent(peer));
}

TEST_CASE(
    "a peer that is disconnected before it answered ends at once, its handle after the turn") {
  Lives lives;
  Peer& peer = lives.call();
  const PeerId id = peer.id;
  lives.lifecycle.disconnect(lives.now, id);

  CHECK(peer.phase == Phase::kGone);
  CHECK(peer.why == Status::kClosed);
  CHECK(is_consistent(peer));
  CHECK(lives.peers.table().find(id) == &peer);

  CHECK(lives.lifecycle.any_left());
  lives.lifecycle.discard_left();
  CHECK(lives.peers.table().find(id) == nullptr);
  CHECK_FALSE(lives.lifecycle.any_left());
}

TEST_CASE("a disconnected peer with nothing pending is sent BYE, whose ACK is awaited for 500 ms") {
  Lives lives;
  Peer& peer = lives.connect();
  lives.lifecycle.disconnect(lives.now, peer.id);

  CHECK(peer.phase == Phase::kFarewell);
  CHECK(is_consistent(peer));
  CHECK(peer.bye_due);
  CHECK(peer.ready.is_linked());
  const Duration waited = lives.wait_for_end(peer);
  CHECK(waited >= milliseconds(500));
  CHECK(waited <= milliseconds(625));
  CHECK(peer.why == Status::kClosed);
}

TEST_CASE("a disconnected peer is sent BYE when it has acknowledged everything") {
  Lives lives;
  Peer& peer = lives.connect();
  channel::Packet& packet = lives.send(peer);
  lives.lifecycle.disconnect(lives.now, peer.id);
  CHECK(peer.phase == Phase::kClosing);
  CHECK_FALSE(peer.bye_due);

  lives.acknowledge(packet, peer);
  lives.lifecycle.begin_leaving(lives.now, peer);
  CHECK(peer.phase == Phase::kFarewell);
}

TEST_CASE("a peer that is abandoned ends at once and is sent nothing") {
  Lives lives;
  Peer& peer = lives.connect();
  lives.send(peer);
  lives.lifecycle.abandon(peer.id);

  CHECK(peer.phase == Phase::kGone);
  CHECK_FALSE(peer.bye_due);
  CHECK_FALSE(peer.ready.is_linked());
  CHECK(lives.lifecycle.any_left());
}

TEST_CASE("a called peer that stays silent is unreachable after the peer timeout") {
  Lives lives;
  Peer& peer = lives.call();
  lives.lifecycle.arm(lives.now, peer);
  const Duration waited = lives.wait_for_end(peer);

  CHECK(waited >= kPeerTimeout);
  CHECK(waited <= kPeerTimeout + 2 * kLook);
  CHECK(peer.why == Status::kUnreachable);
}

TEST_CASE("a silent peer has died if its host's ICMP has refused packets since") {
  const bool since = GENERATE(false, true);
  Lives lives;
  Peer& peer = lives.connect();
  lives.send(peer);
  lives.lifecycle.arm(lives.now, peer);
  peer.refused_at = since ? lives.now + seconds(1) : lives.now - seconds(2);

  lives.wait_for_end(peer);

  CHECK(peer.why == (since ? Status::kPeerDied : Status::kUnreachable));
}

TEST_CASE("a peer that is heard but acknowledges nothing ends after the peer timeout, too") {
  Lives lives;
  Peer& peer = lives.connect();
  channel::Packet& packet = lives.send(peer);
  packet.is_probe = false;
  lives.lifecycle.arm(lives.now, peer);
  const Instant began = lives.now;
  while (peer.phase != Phase::kGone) {
    peer.heard_at = lives.now;
    REQUIRE(lives.handle_next_alarm());
  }

  CHECK(lives.now - began >= kPeerTimeout);
  CHECK(lives.now - began <= kPeerTimeout + 2 * kLook);
  CHECK(peer.why == Status::kUnreachable);
}

TEST_CASE("time in which the program did not poll is not counted as the peer's silence") {
  Lives lives;
  Peer& peer = lives.call();
  lives.lifecycle.arm(lives.now, peer);
  lives.handle_next_alarm(std::chrono::hours(1));
  CHECK(peer.phase == Phase::kCalling);

  const Duration waited = lives.wait_for_end(peer);
  CHECK(waited >= kPeerTimeout - 2 * kLook);
  CHECK(waited <= kPeerTimeout + 2 * kLook);
}

TEST_CASE("a peer with nothing pending has no alarm, however silent it is") {
  Lives lives;
  Peer& peer = lives.connect();
  lives.lifecycle.arm(lives.now, peer);
  REQUIRE(lives.handle_next_alarm());

  CHECK(lives.alarms().next_due() == kNever);
  CHECK(peer.phase == Phase::kConnected);
}

TEST_CASE("idle peers are probed when a place is needed, eight times per peer timeout") {
  Lives lives;
  Peer& peer = lives.connect();
  lives.lifecycle.ask_idle_peers(lives.now);
  CHECK(peer.home.ping_due);
  CHECK(peer.ready.is_linked());

  Peer& later = lives.connect();
  lives.lifecycle.ask_idle_peers(lives.now + kPeerTimeout / 8 - Duration(1));
  CHECK_FALSE(later.home.ping_due);
  lives.lifecycle.ask_idle_peers(lives.now + kPeerTimeout / 8);
  CHECK(later.home.ping_due);
}

TEST_CASE("a peer's end gives back its packets, destinations, timers and half-open place") {
  Lives lives;
  Peer& peer = lives.connect();
  peer.called_us = true;
  HalfOpenCaller caller;
  caller.id = peer.id;
  lives.accepts.add_half_open(caller);
  lives.send(peer);
  lives.lifecycle.arm(lives.now, peer);
  defer_ack(lives, peer);
  lives.ready.mark(peer);

  lives.lifecycle.end(peer, Status::kUnreachable);

  CHECK(is_consistent(peer));
  CHECK(lives.peers.resources.packets.in_use() == 0);
  CHECK(lives.nics.table.channel(0, ChannelKind::kData).waiting() == 0);
  CHECK(lives.alarms().next_due() == kNever);
  CHECK_FALSE(lives.acks.has_deferred());
  CHECK_FALSE(lives.accepts.any_half_open());
  CHECK(lives.ready.empty());
  CHECK(lives.peers.table().find_address(ipv4(20)) == nullptr);

  lives.lifecycle.discard(peer);
  CHECK(lives.nics[0].command->forgotten == std::vector<nic::Destination>{7});
}

TEST_CASE("the deferred ACK of another peer survives a peer's end") {
  Lives lives;
  Peer& ends = lives.connect();
  Peer& stays = lives.connect();
  defer_ack(lives, stays);

  lives.lifecycle.end(ends, Status::kClosed);

  CHECK(lives.acks.has_deferred());
  lives.acks.drop_deferred();
}

TEST_CASE("when a peer ends, another that waits at its address may call") {
  Lives lives;
  Peer& ends = lives.connect();
  Peer& waits = lives.call();
  lives.lifecycle.end(ends, Status::kClosed);

  CHECK(waits.ready.is_linked());
}

TEST_CASE("a full table makes room by the peer that ended first, and by no other") {
  Lives lives;
  std::vector<PeerId> ids;
  while (!lives.peers.table().full()) ids.push_back(lives.connect().id);
  lives.lifecycle.discard_oldest_gone();
  REQUIRE(lives.peers.table().full());
  for (const std::size_t ends : {5, 2}) {
    lives.lifecycle.end(*lives.peers.table().find(ids[ends]), Status::kClosed);
  }

  lives.lifecycle.discard_oldest_gone();

  CHECK(lives.peers.table().find(ids[5]) == nullptr);
  CHECK(lives.peers.table().find(ids[2]) != nullptr);
  CHECK(lives.peers.table().size() == ids.size() - 1);
}

TEST_CASE(
    "closing ends peers that are not connected, sends BYE to others, and is done at their end") {
  Lives lives;
  Peer& called = lives.call();
  Peer& connected = lives.connect();
  lives.lifecycle.begin_close(lives.now);
  CHECK(lives.lifecycle.closing());
  CHECK(called.phase == Phase::kGone);
  CHECK(connected.phase == Phase::kFarewell);
  CHECK_FALSE(lives.lifecycle.all_gone());

  lives.wait_for_end(connected);
  CHECK(lives.lifecycle.all_gone());
}

}  // namespace pullman::engine
