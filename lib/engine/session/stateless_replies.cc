#include "engine/session/stateless_replies.h"

#include <utility>

#include "engine/session/check_packet.h"

namespace pullman::engine {

void StatelessReplies::begin(Instant now, Reply reply, const nic::Address& to) {
  next_ = now + kPause;
  const std::size_t slot = reply.way.slot;
  if (checksum_) wire::seal(reply.packet, {});
  pending_ = std::move(reply);
  resolver_.resolve_stateless_reply(slot, to);
}

void StatelessReplies::reply_unknown_peer(Instant now, const Way& way,
                                          const wire::PacketHeader& header,
                                          const wire::Check& check) {
  if (!may_reply(now)) return;
  auto packet = packet_of(wire::kHeaderBytes + wire::kUnknownPeerReplyBytes, wire::ConnectionId{},
                          header.rail);
  wire::put_checked(frame_of(packet),
                    {.round = check.round, .unknown_peer = true, .epoch = check.epoch});
  begin(now, {way, std::move(packet)}, check.reply_to);
}

void StatelessReplies::refuse_protection(Instant now, const Way& way, const wire::Hello& hello) {
  if (!may_reply(now) || hello.nic >= hello.nic_count) return;
  begin(now, {way, packet_of(wire::kHeaderBytes, hello.reply_to, 0)},
        hello.nics[hello.nic].command);
}

void StatelessReplies::handle_resolved(const nic::PortEvent& event) {
  const auto reply = std::exchange(pending_, std::nullopt);
  if (!reply || event.kind != nic::PortEvent::Kind::kResolved) return;
  Channel& channel = nics_.channel(reply->way.slot, ChannelKind::kCommand);
  channel.send_unremembered(reply->packet, event.to, {.key = reply->way.key});
  channel.port().forget(event.to);
}

void StatelessReplies::forget(std::size_t slot) {
  if (pending_ && pending_->way.slot == slot) pending_.reset();
}

}  // namespace pullman::engine
