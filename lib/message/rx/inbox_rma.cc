// What peers do to regions, as their messages' turns come: puts are filled in as receives are, gets
// answered, atomics done (wire.md 10). Nothing a peer says is believed before Regions has.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "message/rx/atomic.h"
#include "message/rx/inbox.h"

namespace pullman::message {
namespace {

// What an atomic asks for, if it can be meant.
struct Elements {
  AtomicOp op = AtomicOp::kRead;
  AtomicType type = AtomicType::kUint8;
  std::size_t count = 0;
  std::size_t bytes = 0;  // of all elements
};

std::optional<Elements> elements_of(const wire::AtomicLead& lead, std::uint64_t operand_bytes) {
  if (lead.op > static_cast<std::uint8_t>(AtomicOp::kMaskedSwap) ||
      lead.type > static_cast<std::uint8_t>(AtomicType::kLongDoubleComplex)) {
    return std::nullopt;
  }
  const Elements elements{
      .op = static_cast<AtomicOp>(lead.op),
      .type = static_cast<AtomicType>(lead.type),
      .count = lead.count,
      .bytes = std::size_t{lead.count} * size_of(static_cast<AtomicType>(lead.type))};
  const std::size_t sent = compares(elements.op) ? 2 * elements.bytes : elements.bytes;
  const bool fits = is_defined(elements.op, elements.type) && sent == operand_bytes;
  return fits ? std::optional(elements) : std::nullopt;
}

Access access_for(AtomicOp op, bool fetches) {
  if (op == AtomicOp::kRead) return Access::kRead;
  return fetches ? Access::kReadWrite : Access::kWrite;
}

}  // namespace

// An answer is to something that was asked, and as long as that wants it.
bool Inbox::may_begin(const wire::Frame& frame, std::uint64_t total) const {
  if (!knows(frame.kind)) return false;
  if (wire::class_of(frame.kind) != wire::Class::kAnswer) return true;
  Request* asker = remote_->find_pending(frame.tag);
  return asker != nullptr && asker->operation().size == total;
}

// Bytes of the lead, of which the matching needs none, come to be kept where the receiver's notes
// are. What has been acted on was read before.
void Inbox::write_lead(InMessage& message, std::uint64_t offset, std::span<const std::byte> data) {
  if (wire::class_of(message.kind) != wire::Class::kMessage || message.receive == nullptr) return;
  const std::size_t length =
      std::min<std::size_t>(data.size(), wire::lead_bytes(message.kind) - offset);
  std::memcpy(message.receive->operation().lead.data() + offset, data.data(), length);
}

void Inbox::start_put(InMessage& message) {
  const wire::PutLead lead = wire::read_put_lead(message.bytes, message.kind);
  const std::uint64_t length = message.total - wire::lead_bytes(message.kind);
  const auto place = shared_.regions->open(
      {.key = message.tag, .offset = lead.offset, .length = length, .needed = Access::kWrite});
  message.wants_result = true;
  message.refused = !place;
  message.immediate = lead.immediate;
  message.region = place ? shared_.regions->find(message.tag) : nullptr;
  fill(message, place ? place->data() : nullptr, place ? place->size() : 0);
  if (place) message.region->arriving.push_back(message);
  want(message, message.room);
}

void Inbox::end_put(InMessage& message) {
  if (message.refused) return;
  if (wire::has_immediate(message.kind)) {
    const auto offset = static_cast<std::uint64_t>(message.bytes - message.region->bytes.data());
    shared_.regions->events().push_back({.source = peer_,
                                         .immediate = message.immediate,
                                         .key = message.tag,
                                         .offset = offset,
                                         .length = message.room});
    message.charge -= static_cast<std::uint32_t>(kMessageCharge);  // event_taken() gives it back
  }
  shared_.regions->count_write(*message.region);
  leave_region(message);
}

void Inbox::leave_region(InMessage& message) {
  auto& arriving = message.region->arriving;
  arriving.erase(arriving.iterator_to(message));
  message.region = nullptr;
}

void Inbox::answer_get(InMessage& message) {
  const wire::GetLead lead = wire::read_get_lead(message.bytes);
  message.receive = nullptr;
  fill(message, nullptr, 0);
  const auto place = shared_.regions->open(
      {.key = message.tag, .offset = lead.offset, .length = lead.length, .needed = Access::kRead});
  message.refused = message.wants_result = !place;
  if (!place) return;
  shared_.regions->count_read(*shared_.regions->find(message.tag));
  const RemoteOperations::Asker to{peer_, message.id, allowance_, message.charge};
  message.charge = 0;
  remote_->answer(to, *place);
}

void Inbox::do_atomic(InMessage& message) {
  const auto lead = wire::read_atomic_lead(message.bytes);
  std::array<std::byte, wire::kMaxAtomicBytes> sent;
  const std::size_t sent_bytes = message.total - wire::kAtomicLeadBytes;
  std::copy_n(message.bytes + wire::kAtomicLeadBytes, sent_bytes, sent.begin());
  message.receive = nullptr;
  fill(message, nullptr, 0);
  const auto elements = lead ? elements_of(*lead, sent_bytes) : std::nullopt;
  const auto place =
      elements ? shared_.regions->open({.key = message.tag,
                                        .offset = lead->offset,
                                        .length = elements->bytes,
                                        .needed = access_for(elements->op, lead->fetches)})
               : std::nullopt;
  message.refused = !place;
  message.wants_result = !place || !lead->fetches;
  if (!place) return;
  std::array<std::byte, wire::kMaxAtomicBytes> before;
  std::copy(place->begin(), place->end(), before.begin());
  apply(elements->op, elements->type, *place,
        {.operand = std::span(sent).first(elements->bytes),
         .compare = std::span(sent).subspan(compares(elements->op) ? elements->bytes : 0,
                                            elements->bytes)});
  Region& region = *shared_.regions->find(message.tag);
  if (!lead->fetches) return shared_.regions->count_write(region);
  shared_.regions->count_read(region);
  const RemoteOperations::Asker to{peer_, message.id, allowance_, message.charge};
  message.charge = 0;
  remote_->answer_with_copy(to, std::span(before).first(elements->bytes));
}

void Inbox::take_answer(InMessage& message) {
  ++begun_->answers;
  Request* asker = remote_->find_pending(message.tag);
  if (asker != nullptr) {
    remote_->remove_pending(*asker);
    return give_to(message, *asker);
  }
  message.receive = nullptr;  // there were two
  fill(message, nullptr, 0);
  want(message, 0);
}

}  // namespace pullman::message
