// Outbox: messages without allowance, announced by their envelopes (wire.md 4.12). The bytes stay
// where they are until the receiver wants them. When there may be announced is the engine's to say:
// nothing here knows what is in flight.
#include <algorithm>

#include "message/send_descriptor.h"
#include "message/tx/outbox.h"

namespace pullman::message {

using detail::Operation;

// What is not announced may use what is kept for envelopes.
bool Outbox::affords_unheld(std::uint8_t kind, std::uint64_t total) const {
  return introduced_ != 0 && !wire::may_be_announced(kind, total) &&
         allowance_.affords(charge_for(kind, total));
}

bool Outbox::may_announce(const Operation& op) const {
  const std::uint8_t kind = op.special.wire_kind;
  return introduced_ != 0 && wire::may_be_announced(kind, op.size) && !can_admit(op) && has_id() &&
         allowance_.affords(charge_of_envelope(kind));
}

bool Outbox::announce() {
  SendQueues::Queue& waiting = queues_->waiting;
  while (!waiting.empty() && may_announce(waiting.front())) {
    Operation& op = waiting.front();
    if (!put_envelope(op)) break;
    waiting.pop_front();
    op.stage = static_cast<std::uint32_t>(SendStage::kAwaitingGrant);
    queues_->awaiting_grant.push_back(op);
  }
  if (!waiting.empty() && is_blocked(waiting.front())) put_blocked();
  return !ready_.empty();
}

// Nothing can be done for it at the limit that is known, and the receiver has not heard so.
bool Outbox::is_blocked(const Operation& op) const {
  const std::uint8_t kind = op.special.wire_kind;
  return introduced_ != 0 && queues_->said_blocked_at != allowance_.limit() && has_id() &&
         !can_admit(op) &&
         !(wire::may_be_announced(kind, op.size) && allowance_.affords(charge_of_envelope(kind)));
}

// False: there is no packet.
bool Outbox::put_blocked() {
  std::byte* out = room_for(wire::kBlockedBytes);
  if (out == nullptr) return false;
  Packet& packet = ready_.back();
  packet.messages = Packet::kUncounted;
  packet.used += static_cast<std::uint32_t>(wire::put_blocked(out, allowance_.limit()));
  queues_->said_blocked_at = allowance_.limit();
  return true;
}

// wire.md 4.12. False: there is no packet.
bool Outbox::put_envelope(Operation& op) {
  const std::size_t lead = op.special.lead_bytes;
  std::byte* out = room_for(wire::kEnvelopeBytes + lead);
  if (out == nullptr) return false;
  const std::uint8_t kind = op.special.wire_kind;
  allowance_.spend(charge_of_envelope(kind));
  give_id(op);
  note_id(op);
  op.special.is_announced = true;
  op.sent = op.granted = lead;
  wire::put_envelope(out,
                     {.type = wire::FrameType::kEnvelope,
                      .kind = kind,
                      .id = low32(op.message),
                      .tag = op.tag,
                      .total = op.size,
                      .data = {}},
                     lead);
  if (lead != 0) copy_out(op, 0, {out + wire::kEnvelopeBytes, lead});
  Packet& packet = ready_.back();
  packet.messages = Packet::kUncounted;
  packet.used += static_cast<std::uint32_t>(wire::kEnvelopeBytes + lead);
  ++shared_.counters.announced;
  return true;
}

// A short message leaves ahead of those that were sent after it, as if it had not had to wait.
void Outbox::send_announced(Operation& op) {
  set_stage(op, SendStage::kEager, queue_of(op), nullptr);
  const auto behind =
      std::find_if(queues_->eager.begin(), queues_->eager.end(), [&](const Operation& it) {
        return op.special.has_priority || (it.message > op.message && !it.special.has_priority);
      });
  queues_->eager.insert(behind, op);
}

}  // namespace pullman::message
