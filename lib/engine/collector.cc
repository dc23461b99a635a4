#include "engine/collector.h"

#include <algorithm>
#include <unordered_map>

#include "engine/peer/peer_queries.h"
#include "engine/peer/rail_view.h"
#include "nic/address.h"

namespace pullman::engine {
namespace {

using telemetry::clock_count;
using Address = decltype(telemetry::RailRow::remote);
using Name = decltype(telemetry::RailRow::nic);
namespace waits = telemetry::waits;

std::uint64_t clock_count(Duration time) {
  return static_cast<std::uint64_t>(time.count());
}

// Returns what keeps the link from sending; all of it may.
std::string_view limit_of(const reliability::Link& link) {
  if (link.in_flight() >= link.credit()) return waits::kCredit;
  return link.in_flight() >= link.congestion_window() ? waits::kCongestion : waits::kWindow;
}

// Returns what has to come before something of this peer goes on.
std::string_view waits_for(const Peer& peer) {
  switch (peer.phase) {
    case Phase::kResolving:
      return waits::kAddress;
    case Phase::kCalling:
      return waits::kAnswer;
    case Phase::kAnswering:
      return waits::kProof;
    case Phase::kGone:
      return "";
    case Phase::kConnected:
    case Phase::kClosing:
    case Phase::kFarewell:
      break;
  }
  if (in_memory(peer) != 0) return waits::kMemory;
  if (peer.rails != nullptr && !any_usable(peer)) return waits::kRail;
  const Rail& rail =
      *const_cast<Peer&>(peer).rail(peer.rails == nullptr ? 0 : peer.rails->small_rail);
  if (peer.outbox.has_packets() && !rail.link.may_send()) return limit_of(rail.link);
  std::uint32_t in_flight = 0;
  peer.for_each_rail([&](const Rail& one) { in_flight += one.link.in_flight(); });
  if (in_flight != 0) return waits::kAcks;
  if (!peer.outbox.idle()) return waits::kReceive;
  if (peer.one_sided.pending() != 0) return waits::kAnswer;
  return peer.inbox.filling() != 0 ? waits::kRest : "";
}

// The places of a table's rows, one after the other. What was there before is still there.
template <typename Row>
class Places {
 public:
  explicit Places(std::vector<Row>& rows) : rows_(rows) {}
  Row& next() {
    if (next_ == rows_.size()) rows_.emplace_back();
    return rows_[next_++];
  }
  void end() { rows_.resize(next_); }

 private:
  std::vector<Row>& rows_;
  std::size_t next_ = 0;
};

telemetry::ChannelRow row_of(std::size_t slot, const Channel& channel) {
  const nic::PortCounters& counters = channel.port().counters();
  return {.nic = slot,
          .channel = {channel.kind() == ChannelKind::kCommand ? "command" : "data"},
          .sent = counters.sent,
          .received = counters.received,
          .send_refused = counters.send_refused,
          .send_errors = counters.send_errors,
          .receive_errors = counters.receive_errors,
          .receive_truncated = counters.receive_truncated,
          .receive_overflows = counters.receive_overflows,
          .returned = counters.returned,
          .too_long = counters.too_long,
          .bursts_sent = counters.bursts_sent,
          .bursts_received = counters.bursts_received,
          .waiting = channel.waiting()};
}

void count_receives(const message::MatcherTable& matchers, std::vector<telemetry::PeerRow>& peers) {
  struct Receives {
    std::uint64_t count = 0;
    std::uint64_t orders = 0;  // the sum
  };
  std::unordered_map<std::uint32_t, Receives> all;  // by the peer's index
  matchers.for_each_source([&all](PeerId source, std::uint64_t order) {
    Receives& receives = all[source.index];
    ++receives.count;
    receives.orders += order;
  });
  if (all.empty()) return;
  for (telemetry::PeerRow& peer : peers) {
    const auto found = all.find(static_cast<std::uint32_t>(peer.peer));
    if (found == all.end()) continue;
    peer.receives_posted = found->second.count;
    peer.receives_mark = found->second.orders;
  }
}

}  // namespace

void Collector::collect_nics(telemetry::Rows& out) const {
  out.nics.clear();
  out.channels.clear();
  for (std::size_t slot = 0; slot < nics_.size(); ++slot) {
    const nic::Device& device = nics_[slot].device();
    out.nics.push_back({.nic = slot,
                        .name = {device.name},
                        .driver = {device.driver},
                        .address = {nic::to_string(nics_.address_of(slot))},
                        .mbps = device.mbps,
                        .packet_bytes = nics_.channel(slot, ChannelKind::kData).packet_bytes(),
                        .link_down = nics_.links_down() >> slot & 1,
                        .drained = nics_.drained() >> slot & 1});
    for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
      out.channels.push_back(row_of(slot, nics_.channel(slot, kind)));
    }
  }
}

void Collector::fill(const Peer& peer, const Tally& tally, bool anew, telemetry::PeerRow& row) {
  const bool known = !anew && !row.address.view().empty() && row.peer == peer.id.index &&
                     row.generation == peer.id.generation;
  row = {.peer = peer.id.index,
         .generation = peer.id.generation,
         .address = known ? row.address : Address{nic::to_string(peer.command_address)},
         .phase = {name(peer.phase)},
         .why = {peer.phase == Phase::kGone ? name(peer.why) : ""},
         .waits_for = {waits_for(peer)},
         .heard_at = clock_count(peer.heard_at),
         .in_memory = in_memory(peer),
         .messages_sent = peer.outbox.next_id() - peer.first_message,
         .messages_arrived = peer.outbox.begun_until() - peer.first_message,
         .queued_packets = peer.outbox.queued_packets(),
         .unfinished_sends = peer.outbox.unfinished() + peer.one_sided.pending(),
         .filling_receives = peer.inbox.filling(),
         .unexpected_bytes = peer.inbox.charged(),
         .credit_stalls = tally.credit_stalls};
}

void Collector::fill(Instant now, const Rail& rail, bool anew, telemetry::RailRow& row) {
  const reliability::Link& link = rail.link;
  const PeerId id = rail.peer.id;
  const bool known = !anew && !row.remote.view().empty() && row.peer == id.index &&
                     row.generation == id.generation && row.rail == rail.number;
  const RailView view = known ? rail_state(now, rail) : rail_view(now, rail);
  row = {.peer = id.index,
         .generation = id.generation,
         .rail = view.number,
         .nic = known ? row.nic : Name{view.nic},
         .local = known ? row.local : Address{view.local},
         .remote = known ? row.remote : Address{view.remote},
         .state = {name(view.state)},
         .reason = {name(view.reason)},
         .since = rail.peer.rails == nullptr ? 0 : clock_count(now - view.in_state),
         .rtt_least = clock_count(link.rtt().least()),
         .rtt = clock_count(link.rtt().smoothed()),
         .rtt_variation = clock_count(link.rtt().variation()),
         .window = link.congestion_window(),
         .credit = link.credit(),
         .in_flight = link.in_flight(),
         .packet_bytes = view.packet_bytes,
         .packets_sent = link.packets_arrived() + link.packets_lost() + link.in_flight(),
         .packets_acked = link.packets_arrived(),
         .packets_received =
             rail.peer.introduced ? link.acks().next() - rail.peer.first_number_there : 0,
         .bytes_sent = view.bytes_sent,
         .lost = link.packets_lost(),
         .lost_after_timeout = link.lost_after_timeout(),
         .spurious = link.spurious(),
         .timeouts = link.timeouts(),
         .evacuated = view.evacuated,
         .times_left = view.times_left};
}

// Packets on the way through memory are not among those of links.
void Collector::fill(const Peer& peer, const RailView& memory, telemetry::RailRow& row) {
  row = {.peer = peer.id.index,
         .generation = peer.id.generation,
         .rail = memory.number,
         .nic = {memory.nic},
         .state = {name(memory.state)},
         .reason = {name(memory.reason)},
         .packet_bytes = memory.packet_bytes,
         .packets_sent = memory.packets_sent,
         .packets_acked = memory.packets_sent - memory.in_flight};
}

void Collector::collect(Instant now, bool anew, telemetry::Rows& out) const {
  collect_nics(out);
  telemetry::ContextRow& context = out.context;
  context.lost = resources_.ended.lost;
  context.lost_after_timeout = resources_.ended.lost_after_timeout;
  context.credit_stalls = resources_.ended.credit_stalls;
  Places peers(out.peers);
  Places rails(out.rails);
  resources_.peers.for_each([&](const Peer& peer) {
    const Tally& tally = resources_.peers.tally_of(peer);
    fill(peer, tally, anew, peers.next());
    if (peer.phase == Phase::kGone) return;  // its links were counted when it ended
    context.credit_stalls += tally.credit_stalls;
    peer.for_each_rail([&](const Rail& rail) {
      telemetry::RailRow& row = rails.next();
      fill(now, rail, anew, row);
      if (rail.number == 0) row.bytes_sent += tally.bytes_sent;
      context.lost += row.lost;
      context.lost_after_timeout += row.lost_after_timeout;
    });
    if (peer.memory_rail() != nullptr) fill(peer, memory_view(*peer.memory), rails.next());
  });
  peers.end();
  rails.end();
  count_receives(resources_.matchers, out.peers);
  context.epoch = resources_.epoch;
  context.address = {nic::to_string(nics_.address())};
  context.stats = inspector_.stats();
  context.peers = resources_.peers.size();
  context.rails_blamed = rails_.rails_blamed();
  context.packets_taken = resources_.packets.in_use();
  context.receives_posted = resources_.matchers.receives_of_program();
  context.max_in_flight = std::max(context.max_in_flight, context.stats.packets_in_flight);
  context.max_packets_taken = std::max(context.max_packets_taken, context.packets_taken);
  context.max_unexpected_bytes =
      std::max(context.max_unexpected_bytes, context.stats.unexpected_bytes);
  context.rtt = ack_handler_.rtt_histogram();
}

}  // namespace pullman::engine
