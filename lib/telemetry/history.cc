#include "telemetry/history.h"

namespace pullman::telemetry {
namespace {

// A counter of the context that counts what went wrong.
struct Wrong {
  std::string_view kind;
  std::uint64_t Stats::*counter;
  std::string_view text;
};
constexpr Wrong kWrong[] = {
    {"datagrams refused", &Stats::dropped_packets,
     "packets came that are no packets of ours, or not in place: the context's dropped_ columns "
     "say why"},
    {"send errors", &Stats::nic_send_errors, "a NIC rejected packets"},
    {"receive errors", &Stats::nic_receive_errors, "a NIC reported errors for received packets"},
    {"receive overflows", &Stats::nic_receive_overflows,
     "sockets were full: the program polled too rarely; raise net.core.rmem_max and "
     "PULLMAN_RECEIVE_BUFFER_BYTES"},
    {"errors: timeout", &Stats::nic_errors_timeout,
     "a device or the kernel did not answer in time"},
    {"errors: flushed", &Stats::nic_errors_flushed, "a NIC gave back what was posted, undone"},
    {"errors: device", &Stats::nic_errors_device, "a device or its link failed"},
    {"errors: remote", &Stats::nic_errors_remote, "the network or a remote host refused packets"},
    {"errors: local", &Stats::nic_errors_local,
     "this host refused packets: no route, no memory, or a filter"},
    {"black holes", &Stats::path_black_holes,
     "a path ceased to carry packets of their size: the MTU differs along the way"},
};

// A slot is used again by another peer of another generation.
std::uint64_t key_of(std::uint64_t peer, std::uint64_t generation, std::uint64_t rail = 0) {
  return generation << 32 | peer << 4 | rail;
}

// Returns whether any packet to or from the peer is progress. A peer that only has no receive for a
// message still sends and answers packets, to be known to live.
bool ends_by_packets(std::string_view reason) {
  return reason != waits::kReceive && reason != waits::kAnswer;
}

}  // namespace

void History::complete(Instant now, Rows& rows) {
  ++round_;
  const std::uint64_t at = clock_count(now);
  complete_waits(at, rows);
  complete_receives(at, rows);
  complete_losses(at, rows);
  add_errors(at, rows);
}

void History::complete_waits(std::uint64_t now, Rows& rows) {
  std::unordered_map<std::uint64_t, std::uint64_t> packets;  // to and from each peer
  for (const RailRow& rail : rows.rails) {
    packets[key_of(rail.peer, rail.generation)] += rail.packets_acked + rail.packets_received;
  }
  rows.context.peers_waiting = 0;
  for (PeerRow& peer : rows.peers) {
    const std::string_view reason = peer.waits_for.view();
    if (reason.empty()) continue;
    ++rows.context.peers_waiting;
    const std::uint64_t key = key_of(peer.peer, peer.generation);
    const std::uint64_t progress =
        ends_by_packets(reason)
            ? packets[key]
            : peer.unfinished_sends + peer.filling_receives + peer.queued_packets;
    Wait& wait = waits_[key];
    const bool goes_on = wait.since == 0 || wait.reason != reason || wait.progress != progress;
    if (goes_on) wait = {.reason = std::string(reason), .progress = progress, .since = now};
    wait.round = round_;
    peer.waits_since = wait.since;
  }
  std::erase_if(waits_, [this](const auto& entry) { return entry.second.round != round_; });
}

void History::complete_receives(std::uint64_t now, Rows& rows) {
  for (PeerRow& peer : rows.peers) {
    if (peer.receives_posted == 0) continue;
    Receives& known = receives_[key_of(peer.peer, peer.generation)];
    if (known.since == 0 || known.mark != peer.receives_mark) {
      known = {.mark = peer.receives_mark, .since = now};
    }
    known.round = round_;
    peer.receives_since = known.since;
  }
  std::erase_if(receives_, [this](const auto& entry) { return entry.second.round != round_; });
}

void History::complete_losses(std::uint64_t now, Rows& rows) {
  for (RailRow& rail : rows.rails) {
    if (rail.lost == 0) continue;
    Loss& loss = losses_[key_of(rail.peer, rail.generation, rail.rail)];
    if (loss.first == 0) loss.first = now;
    if (rail.lost != loss.lost) loss.last = now;
    loss.lost = rail.lost;
    loss.round = round_;
    rail.first_lost = loss.first;
    rail.last_lost = loss.last;
  }
  std::erase_if(losses_, [this](const auto& entry) { return entry.second.round != round_; });
}

void History::add_errors(std::uint64_t now, Rows& rows) {
  for (const Wrong& wrong : kWrong) {
    const std::uint64_t times = rows.context.stats.*wrong.counter;
    if (times == 0) continue;
    ErrorRow& row = counted_[wrong.kind];
    if (row.times == 0) row = {.kind = {wrong.kind}, .first = now, .text = {wrong.text}};
    if (row.times != times) row.last = now;
    row.times = times;
    rows.errors.push_back(row);
  }
}

}  // namespace pullman::telemetry
