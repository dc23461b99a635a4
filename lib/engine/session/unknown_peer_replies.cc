#include "engine/session/unknown_peer_replies.h"

#include <utility>

#include "engine/session/check_packet.h"

namespace pullman::engine {

void UnknownPeerReplies::reply(Instant now, std::size_t slot, std::uint8_t key,
                               const wire::PacketHeader& header, const wire::Check& check) {
  if (pending_ || now < next_) return;
  next_ = now + kPause;
  pending_ = Reply{
      .slot = slot, .key = key, .rail = header.rail, .round = check.round, .epoch = check.epoch};
  resolver_.resolve_unknown_peer(slot, check.reply_to);
}

void UnknownPeerReplies::handle_resolved(const nic::PortEvent& event) {
  const auto reply = std::exchange(pending_, std::nullopt);
  if (!reply || event.kind != nic::PortEvent::Kind::kResolved) return;
  auto packet = packet_of(wire::kHeaderBytes + wire::kUnknownPeerReplyBytes, wire::ConnectionId{},
                          reply->rail);
  wire::put_checked(frame_of(packet),
                    {.round = reply->round, .unknown_peer = true, .epoch = reply->epoch});
  if (checksum_) wire::seal(packet, {});
  Channel& channel = nics_.channel(reply->slot, ChannelKind::kCommand);
  channel.send_unremembered(packet, event.to, {.key = reply->key});
  channel.port().forget(event.to);
}

void UnknownPeerReplies::forget(std::size_t slot) {
  if (pending_ && pending_->slot == slot) pending_.reset();
}

}  // namespace pullman::engine
