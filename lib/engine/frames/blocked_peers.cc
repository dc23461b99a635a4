#include "engine/frames/blocked_peers.h"

#include "base/log.h"
#include "engine/peer/peer_queries.h"

namespace pullman::engine {
namespace {

// Returns whether a long message is coming in, or packets of what was sent are in flight.
bool is_under_way(const Peer& peer) {
  return peer.inbox.filling() != 0 || (peer.outbox.unfinished() != 0 && in_flight(peer) != 0);
}

}  // namespace

bool BlockedPeers::handle(Instant now, Peer& peer, std::uint64_t limit) {
  const bool had_others = reserve_.any_blocked();
  if (!peer.inbox.handle_blocked(limit)) return false;
  if (!had_others) standstill_.begin(now, messages_done());
  return true;
}

// Counts the messages sent by the program, received by it, or unexpected. It does not count
// packets: keep-alive probes and their ACKs come and go even if nothing moves.
std::uint64_t BlockedPeers::messages_done() const {
  return inbox_counters_.messages + inbox_counters_.unexpected + inbox_counters_.caught_up +
         stats_.messages_sent;
}

void BlockedPeers::watch(Instant now) {
  if (reserve_.take_news()) {
    reserve_.for_each_blocked([this](PeerId id) {
      Peer& peer = *peers_.find(id);
      if (peer.inbox.has_frames()) ready_.mark(peer);
    });
  }
  if (now < standstill_.due()) return;
  Standstill::Movement movement{.done = messages_done()};
  peers_.for_each(
      [&](const Peer& peer) { movement.under_way = movement.under_way || is_under_way(peer); });
  const Standstill::Found found = standstill_.look(now, movement);
  if (found != Standstill::Found::kMoving) end_receives(found);
}

// Ends the receives that name a blocked peer. Those from anybody may still be matched by any other
// peer, however long that computes: they end if there is none.
void BlockedPeers::end_receives(Standstill::Found found) {
  bool others = false;
  peers_.for_each([&](const Peer& peer) {
    others = others || (peer.phase != Phase::kGone && !peer.inbox.is_blocked());
  });
  reserve_.for_each_blocked([&](PeerId id) {
    const Peer& peer = *peers_.find(id);
    const std::size_t ended = matchers_.fail_receives(id, Status::kNoMemory);
    if (ended == 0 && found == Standstill::Found::kStillStanding) return;
    log().warn(
        "{} can send nothing more: {} bytes of its messages, which nobody receives, use all the "
        "memory that it may have here; {} (PULLMAN_UNEXPECTED_BYTES is {}: a larger one helps)",
        nic::to_string(peer.command_address), peer.inbox.charged(),
        others ? "receives that name it end, those from anybody wait for other peers"
               : "receives that wait for it end",
        config_.unexpected_bytes);
  });
  if (!others) matchers_.fail_receives(kAnyPeer, Status::kNoMemory);
}

}  // namespace pullman::engine
