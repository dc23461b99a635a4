#include "engine/frames/ack_handler.h"

#include <algorithm>

namespace pullman::engine {

using wire::Verdict;

bool AckHandler::may_defer(const Rail& rail, const wire::PacketHeader& header, Came came,
                           bool is_one_message) const {
  const Peer& peer = rail.peer;
  if (acks_.has_deferred()) [[unlikely]]
    return false;
  if (came != Came::kAlone || !is_one_message) [[unlikely]] {
    const bool together = came == Came::kTogether;
    if (!together || !rail.link.acks_all(header) || peer.ready.is_linked()) return false;
  }
  return header.has(wire::kFlagAck) && peer.phase == Phase::kConnected && peer.said == nullptr &&
         !rail.link.repeats_ack(header) && rail.link.believes(header);
}

void AckHandler::take_deferred(Instant now) {
  const DeferredAck& ack = acks_.deferred();
  Rail& rail = acks_.take_deferred();
  handle(now, rail, {ack.header, ack.module}, {.ago = now - ack.came_at, .unseen = ack.unpolled});
  acks_.schedule(now, rail);
}

Verdict AckHandler::handle(Instant now, Rail& rail, const ReceivedAck& ack,
                           reliability::AckTiming timing) {
  // Many ACKs repeat the one before: those piggybacked on packets that leave between two arrivals.
  const bool news = ack.sack != nullptr || rail.peer.phase != Phase::kConnected;
  if (!news && rail.link.repeats_ack(ack.header)) return Verdict::kAccepted;
  const Verdict verdict = rail.link.handle_ack(now, ack.header, ack.sack, timing);
  if (verdict != Verdict::kAccepted) return verdict;
  collect(now, rail);
  if (rail.peer.rails != nullptr) {
    rails_.handle_answer(now, rail, came_by(rail, ack.module), ack.header.poll_gap);
  }
  if (rail.link.rtt().sampled()) {
    rtt_ns_ = static_cast<std::uint64_t>(rail.link.rtt().smoothed().count());
    const auto latest = static_cast<std::uint64_t>(rail.link.rtt().latest().count());
    ++rtt_histogram_[telemetry::rtt_class(latest)];
    rtt_histogram_.back() += latest;
  }
  return verdict;
}

void AckHandler::collect(Instant now, Rail& rail) {
  Peer& peer = rail.peer;
  bool bye_acked = false;
  Instant asked = Instant::min();  // when the last of the answered PINGs was sent
  if (!rail.link.acked().empty()) peer.outbox.note_ack();
  for (auto& acked = rail.link.acked(); !acked.empty();) {
    Packet& packet = acked.front();
    acked.pop_front();
    if (!packet.is_probe) {
      peer.news_at = now;
    } else if (!packet.is_path_probe) {
      asked = std::max(asked, packet.sent_at);
    } else {
      rail.link.path().handle_probe_acked(now, packet.size());
    }
    if (packet.rest != 0) [[unlikely]] {
      path_sizer_.resume(rail, packet);
      continue;
    }
    if (&packet == peer.hello) peer.hello = nullptr;
    peer.outbox.handle_acked(packet);
    reclaimer_.release(rail, packet);
    bye_acked = peer.phase == Phase::kFarewell && !peer.bye_due && nothing_to_deliver(peer);
  }
  if (asked != Instant::min()) rail.link.handle_probe_acked(now, asked);
  if (rail.link.path().has_news()) [[unlikely]]
    path_sizer_.settle(now, rail);
  alarms_.arm_loss(now, rail);
  if (bye_acked) return lifecycle_.end(peer, Status::kClosed);
  if (peer.phase == Phase::kClosing) lifecycle_.begin_leaving(now, peer);
  if (has_work(peer)) ready_.mark(peer);
}

}  // namespace pullman::engine
