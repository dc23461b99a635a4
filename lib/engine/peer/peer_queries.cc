#include "engine/peer/peer_queries.h"

#include <algorithm>
#include <memory>

namespace pullman::engine {

bool is_consistent(const Peer& peer) {
  // Only what a peer has said of itself gives it rails, or memory.
  const bool rails = (peer.rails == nullptr && peer.memory == nullptr) || peer.introduced;
  if (peer.memory_due && peer.memory == nullptr) return false;
  switch (peer.phase) {
    case Phase::kResolving:
    case Phase::kCalling:
      return !peer.introduced && peer.why == Status::kOk && rails && !peer.bye_due;
    case Phase::kAnswering:
      return !peer.introduced && peer.said != nullptr && peer.why == Status::kOk && rails &&
             !peer.bye_due;
    case Phase::kConnected:
    case Phase::kClosing:
      return peer.introduced && peer.theirs.proof != 0 && peer.why == Status::kOk && rails;
    case Phase::kFarewell:
      // The outbox need not be idle: gets of the peer that arrive once the farewell has begun,
      // before the BYE has left, are still answered (seed 1731).
      return peer.introduced && peer.theirs.proof != 0 && peer.why == Status::kOk && rails &&
             peer.alarm.checked_in();
    case Phase::kGone:
      return rails && peer.why != Status::kOk && peer.said == nullptr && peer.hello == nullptr &&
             !peer.bye_due && !peer.memory_due && !peer.alarm.checked_in() &&
             !peer.ready.is_linked() && (peer.memory == nullptr || !peer.memory->rail);
  }
  return false;
}

std::size_t in_flight(const Peer& peer) {
  std::size_t packets = 0;
  peer.for_each_rail([&](const Rail& rail) {
    if (usable(rail)) packets += rail.link.in_flight();  // unusable rails carry only probes
  });
  return packets + in_memory(peer);
}

bool nothing_to_deliver(const Peer& peer) {
  bool nothing = in_flight(peer) == 0;
  peer.for_each_rail([&](const Rail& rail) { nothing = nothing && rail.link.lost().empty(); });
  return nothing && (peer.rails == nullptr || peer.rails->evacuated.empty());
}

std::size_t in_memory(const Peer& peer) {
  const MemoryRail* rail = peer.memory_rail();
  return rail == nullptr ? 0 : rail->in_flight();
}

bool has_unacked_data(const Peer& peer) {
  bool any = (peer.rails != nullptr && !peer.rails->evacuated.empty()) || in_memory(peer) != 0;
  peer.for_each_rail([&](const Rail& rail) {
    const auto& window = rail.link.window();
    any = any || !rail.link.lost().empty();
    for (auto n = window.floor(); n < window.next() && !any; ++n) {
      const Packet* packet = const_cast<Rail&>(rail).link.find(n);
      any = packet != nullptr && !packet->is_probe;
    }
  });
  return any;
}

bool was_met_on(const Rail& rail) {
  return rail.link.packets_arrived() != 0 || (rail.number == 0 && rail.peer.called_us);
}

void set_heard(Peer& peer, Instant at) {
  LivenessProbe* probe = peer.checking == nullptr ? nullptr : &peer.checking->probe;
  const bool goes_on = probe != nullptr && probe->since >= peer.heard_at;
  peer.heard_at = at;
  if (goes_on) probe->since = std::max(probe->since, at);
}

void clear_liveness_probe(Peer& peer) {
  LivenessProbe& probe = peer.checking->probe;
  probe.asked = false;
  probe.unknown = probe.refused = 0;
  probe.tries = 0;
}

bool tells_nics(const Peer& peer) {
  const bool met = peer.phase == Phase::kConnected || peer.phase == Phase::kClosing;
  return peer.nics_due && met &&
         (peer.rails == nullptr || (peer.rails->paired && !peer.rails->ways_due));
}

bool holds_list(const Packet& packet) {
  return !packet.is_probe && packet.payload == nullptr && wire::list_count(packet.body());
}

bool holds_old_list(const Packet& packet, const Peer& peer) {
  return holds_list(packet) && peer.nic_news != nullptr &&
         wire::list_count(packet.body()) != peer.nic_news->lists_told;
}

NicNews& news_of(Peer& peer) {
  if (peer.nic_news == nullptr) peer.nic_news = std::make_unique<NicNews>();
  return *peer.nic_news;
}

Instant list_due(const Peer& peer) {
  const Rails& rails = *peer.rails;
  return rails.newest != nullptr && rails.paired ? rails.lists_due : kNever;
}

Checking& checking_of(Peer& peer) {
  if (peer.checking == nullptr) {
    peer.checking = std::make_unique<Checking>();
    Checking& made = *peer.checking;
    made.asking.timer.name(TimerPurpose::kCheckAsking, peer.id.index);
    made.answering.timer.name(TimerPurpose::kCheckAnswers, peer.id.index);
    made.probe.timer.name(TimerPurpose::kLiveness, peer.id.index);
  }
  return *peer.checking;
}

std::size_t check_bytes(const Rail& rail, wire::CheckSize size) {
  if (size == wire::CheckSize::kLargest) {
    return rail.link.path().most() - data(rail).initial_bytes();
  }
  return wire::kHeaderBytes +
         wire::least_check_bytes(nic::Address(rail.remote), command(rail).port().address());
}

void forget_fault(const Rail& rail) {
  if (rail.peer.checking == nullptr) return;
  Asking& asking = rail.peer.checking->asking;
  if (asking.found[rail.number] != RailFinding::kFine) asking.outdated |= bit_of(rail);
}

bool others_up(const Rail& rail) {
  bool any = false;
  rail.peer.for_each_rail(
      [&](const Rail& other) { any = any || (&other != &rail && upkeep_of(other).health.up()); });
  return any;
}

bool any_usable(const Peer& peer) {
  bool any = false;
  peer.for_each_rail([&](const Rail& rail) { any = any || usable(rail); });
  return any;
}

bool rails_have_work(const Peer& peer) {
  bool any = peer.rails->reports_due || !peer.rails->evacuated.empty();
  peer.for_each_rail([&](const Rail& rail) { any = any || has_work(rail); });
  return any;
}

bool leaves_whole(const Peer& peer) {
  const std::size_t packets = peer.outbox.queued_packets();
  if (packets == 0 || peer.outbox.has_chunks()) return false;
  if (const MemoryRail* memory = peer.memory_rail()) return memory->has_room();
  return peer.rails != nullptr || peer.home.link.permits() >= packets;
}

bool has_work(const Peer& peer) {
  return peer.outbox.has_packets() || may_announce(peer) || peer.inbox.has_frames() ||
         peer.bye_due || peer.memory_due || tells_nics(peer) || has_work(peer.home) ||
         (peer.rails != nullptr && rails_have_work(peer));
}

bool all_was_heard(const Peer& peer) {
  return !peer.outbox.has_packets() && nothing_to_deliver(peer);
}

bool has_work(const Rail& rail) {
  return rail.ping_due || !rail.link.lost().empty();
}

bool can_tend(const Rail& rail) {
  if (rail.ping_due) return true;
  const auto& lost = rail.link.lost();
  return !lost.empty() && (lost.front().is_probe || rail.link.may_send());
}

// Reports of rails need a large packet, and so may a BYE.
std::size_t control_bytes(const Peer& peer) {
  if (peer.bye_due) return message::Inbox::kMaxByeBytes;
  const bool reports = peer.rails != nullptr && peer.rails->reports_due;
  return (reports ? wire::kMaxWaysBytes : wire::kGrantBytes) +
         (peer.memory_due ? wire::kMaxMemoryBytes : 0);
}

}  // namespace pullman::engine
