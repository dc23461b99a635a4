#include "engine/frames/frame_handler.h"

#include "message/rma/one_sided.h"

namespace pullman::engine {

using reliability::Arrival;
using wire::Verdict;

namespace {

// Handles the result of a message of ours, or of what we asked for (wire.md 10.2). Returns false if
// it contradicts what was sent.
bool handle_result(Peer& peer, const wire::Frame& frame) {
  using Found = message::Outbox::Found;
  const auto id = peer.outbox.id_of(frame.id);
  if (!id) return false;
  const bool refused = frame.limit == static_cast<std::uint64_t>(wire::Result::kRefusedAccess);
  const Status status = refused ? Status::kRefusedAccess : Status::kOk;
  if (peer.one_sided.handle_result(*id, status)) return true;
  return peer.outbox.handle_result(*id, status) != Found::kRefused;
}

}  // namespace

// The peer will send nothing more. It says BYE last: everything it sent has arrived, unless it
// closed abortively. BYE itself says what the peer has of ours, since its last ACKs may be lost, or
// under way on other rails.
void FrameHandler::handle_bye(Peer& peer) {
  reclaimer_.take_back_all(peer);
  peer.outbox.handle_bye(bye_);
  // If both sides have said BYE, neither waits for the other's last ACK.
  lifecycle_.end(peer, peer.phase == Phase::kFarewell ? Status::kClosed : Status::kPeerClosed);
}

bool FrameHandler::brings_news(const Peer& peer, const wire::FrameList& frames,
                               std::span<const std::byte> body) {
  if (body.empty()) return peer.inbox.is_news(frames.front());  // a bulk packet
  wire::FrameReader reader(body);
  for (wire::Frame frame; reader.next(frame);) {
    const bool of_message = frame.type == wire::FrameType::kMessage ||
                            frame.type == wire::FrameType::kChunk ||
                            frame.type == wire::FrameType::kEnvelope;
    if (of_message && peer.inbox.is_news(frame)) return true;
  }
  return false;
}

Verdict FrameHandler::handle(Instant now, Rail& rail, const wire::PacketHeader& header,
                             wire::FrameList& frames) {
  Peer& peer = rail.peer;
  if (const Arrival arrival = rail.link.judge(header); arrival != Arrival::kNew) [[unlikely]] {
    if (arrival == Arrival::kOutside) return Verdict::kOutsideWindow;
    rail.link.handle_duplicate(header);
    return Verdict::kDuplicate;
  }
  const FrameEffect effect = take(peer, frames);
  if (effect.refused) [[unlikely]]
    return Verdict::kOverLimit;
  rail.link.handle_arrival(now, header, clock_.poll_gap());
  if (effect.redundant) [[unlikely]]
    rail.link.handle_redundant();
  if (effect.urgent) [[unlikely]]
    rail.link.handle_ping();
  follow_up(now, peer);
  if (effect.bye) [[unlikely]]
    handle_bye(peer);
  return Verdict::kAccepted;
}

void FrameHandler::follow_up(Instant now, Peer& peer) {
  if (peer.inbox.has_frames() || peer.outbox.has_packets() || peer.phase == Phase::kClosing ||
      may_announce(peer)) [[unlikely]] {
    ready_.mark(peer);
  }
  if (peer.inbox.expects_more() && !peer.alarm.checked_in()) [[unlikely]]
    lifecycle_.arm(now, peer);
}

// Handles the common case: one MESSAGE frame.
FrameEffect FrameHandler::act_on_message(Peer& peer, const wire::Frame& frame) {
  const message::Taken taken = peer.inbox.handle_message(frame);
  return {.refused = taken == message::Taken::kRefused,
          .redundant = taken == message::Taken::kRedundant};
}

FrameEffect FrameHandler::act_on(Peer& peer, wire::FrameList& frames) {
  using message::Taken;
  FrameEffect effect;
  bool useful = false;
  while (const wire::Frame* next = frames.next()) {
    const wire::Frame& frame = *next;
    Taken taken = Taken::kNew;
    switch (frame.type) {
      case wire::FrameType::kMessage:
        taken = peer.inbox.handle_message(frame);
        break;
      case wire::FrameType::kChunk:
        taken = peer.inbox.handle_chunk(frame);
        break;
      case wire::FrameType::kEnvelope:
        taken = peer.inbox.handle_envelope(frame);
        break;
      case wire::FrameType::kGrant:
        if (!peer.outbox.handle_grant(frame.id, frame.limit)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kResult:
        if (!handle_result(peer, frame)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kAllowance:
        peer.outbox.handle_allowance(frame.limit, frame.total);
        break;
      case wire::FrameType::kBlocked:
        if (!blocked_.handle(clock_.polled_until(), peer, frame.limit)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kPing:
        effect.urgent = true;
        break;
      case wire::FrameType::kBye:
        if (!peer.outbox.is_possible(frame)) taken = Taken::kRefused;
        bye_ = frame;
        effect.urgent = effect.bye = true;
        break;
      case wire::FrameType::kHello:
        break;  // it was read before
      case wire::FrameType::kPadding:
        continue;  // padding makes a packet neither useful nor redundant
      case wire::FrameType::kWays:
        exchange_.handle_ways(peer, frame);
        break;
      case wire::FrameType::kRail:
        rails_.handle_report(peer, frame);
        break;
      case wire::FrameType::kNics:
        if (!exchange_.handle_list(peer, frame)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kMemory:
        if (!memory_.handle_frame(peer, frame)) taken = Taken::kRefused;
        break;
      case wire::FrameType::kSack:
      case wire::FrameType::kCheck:
      case wire::FrameType::kChecked:
        taken = Taken::kRefused;
        break;  // wire.md 4.7, 9.8
    }
    if (taken == Taken::kRefused) return {.refused = true};
    (taken == Taken::kRedundant ? effect.redundant : useful) = true;
  }
  effect.redundant = effect.redundant && !useful;
  return effect;
}

}  // namespace pullman::engine
