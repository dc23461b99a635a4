#include "message/rx/rma_target.h"

#include <algorithm>
#include <optional>

#include "message/rx/atomic.h"

namespace pullman::message {
namespace {

// The operands of a valid atomic.
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

AtomicRequest::AtomicRequest(const InMessage& message)
    : lead(wire::read_atomic_lead(message.bytes)),
      operand_bytes(message.total - wire::kAtomicLeadBytes) {
  std::copy_n(message.bytes + wire::kAtomicLeadBytes, operand_bytes, operands.begin());
}

std::span<std::byte> RmaTarget::begin_put(InMessage& put) {
  const wire::PutLead lead = wire::read_put_lead(put.bytes, put.kind);
  const std::uint64_t length = put.total - wire::lead_bytes(put.kind);
  const auto place = regions_.open(
      {.key = put.tag, .offset = lead.offset, .length = length, .needed = Access::kWrite});
  put.wants_result = true;
  put.refused = !place;
  put.immediate = lead.immediate;
  put.region = place ? regions_.find(put.tag) : nullptr;
  if (!place) return {};
  put.region->arriving.push_back(put);
  return *place;
}

void RmaTarget::end_put(InMessage& put) {
  if (put.refused) return;
  if (wire::has_immediate(put.kind)) {
    const auto offset = static_cast<std::uint64_t>(put.bytes - put.region->bytes.data());
    regions_.events().push_back({.source = peer_,
                                 .immediate = put.immediate,
                                 .key = put.tag,
                                 .offset = offset,
                                 .length = put.room});
    put.charge -= static_cast<std::uint32_t>(kMessageCharge);  // event_taken() gives it back
  }
  regions_.count_write(*put.region);
  leave_region(put);
}

void RmaTarget::leave_region(InMessage& put) {
  auto& arriving = put.region->arriving;
  arriving.erase(arriving.iterator_to(put));
  put.region = nullptr;
}

// The charge moves to the asker.
RemoteOperations::Asker RmaTarget::asker_of(InMessage& message, AllowanceGranted& allowance) const {
  const std::uint64_t charge = message.charge;
  message.charge = 0;
  return {peer_, message.id, allowance, charge};
}

void RmaTarget::answer_get(InMessage& get, const wire::GetLead& lead, AllowanceGranted& allowance) {
  const auto place = regions_.open(
      {.key = get.tag, .offset = lead.offset, .length = lead.length, .needed = Access::kRead});
  get.refused = get.wants_result = !place;
  if (!place) return;
  regions_.count_read(*regions_.find(get.tag));
  remote_.answer(asker_of(get, allowance), *place);
}

void RmaTarget::execute(InMessage& atomic, const AtomicRequest& request,
                        AllowanceGranted& allowance) {
  const auto& lead = request.lead;
  const auto elements = lead ? elements_of(*lead, request.operand_bytes) : std::nullopt;
  const auto place = elements ? regions_.open({.key = atomic.tag,
                                               .offset = lead->offset,
                                               .length = elements->bytes,
                                               .needed = access_for(elements->op, lead->fetches)})
                              : std::nullopt;
  atomic.refused = !place;
  atomic.wants_result = !place || !lead->fetches;
  if (!place) return;
  std::array<std::byte, wire::kMaxAtomicBytes> before;
  std::copy(place->begin(), place->end(), before.begin());
  apply(elements->op, elements->type, *place,
        {.operand = std::span(request.operands).first(elements->bytes),
         .compare = std::span(request.operands)
                        .subspan(compares(elements->op) ? elements->bytes : 0, elements->bytes)});
  Region& region = *regions_.find(atomic.tag);
  if (!lead->fetches) return regions_.count_write(region);
  regions_.count_read(region);
  remote_.answer_with_copy(asker_of(atomic, allowance), std::span(before).first(elements->bytes));
}

}  // namespace pullman::message
