#include "engine/handshake/protection_mismatch.h"

#include "wire/protection.h"

namespace pullman::engine {
namespace {

wire::Protection other_than(wire::Protection mode) {
  using wire::Protection;
  return mode == Protection::kEncrypt ? Protection::kAuthenticate : Protection::kEncrypt;
}

}  // namespace

void ProtectionMismatch::handle(Instant now, std::size_t slot, std::span<const std::byte> datagram,
                                wire::FrameList& frames) {
  if (protection_ == nullptr) return;
  const wire::Protection other = other_than(protection_->mode());
  const auto packet = wire::packet_in(datagram);
  wire::PacketHeader header;
  if (wire::decode(packet, header, other) != wire::Verdict::kAccepted) return;
  if (!wire::is_initial(header.type)) return;
  const auto key = protection_->open_initial(datagram, other);
  if (!key) return;
  const auto body = packet.subspan(wire::kHeaderBytes);
  if (header.type == wire::PacketType::kCheck && body.empty()) {
    handle_refusal(header.to);
  } else if (header.type == wire::PacketType::kHello && frames.read(body)) {
    const wire::Frame* const frame = frames.next();
    if (frame == nullptr || frame->type != wire::FrameType::kHello) return;
    const auto hello = wire::decode_hello(frame->data);
    if (hello && !lifecycle_.closing() && nics_.is_called(*hello)) {
      replies_.refuse_protection(now, {slot, *key}, *hello);
    }
  }
}

// Only who has the job's key and has read our HELLO can name this call.
void ProtectionMismatch::handle_refusal(const wire::ConnectionId& to) {
  Peer* const peer = peers_.find(to);
  const bool calling = peer != nullptr && !peer->called_us && !peer->introduced;
  if (calling && peer->phase != Phase::kGone) lifecycle_.end(*peer, Status::kIncompatible);
}

}  // namespace pullman::engine
