#include "wire/kind.h"

#include "wire/bytes.h"

namespace pullman::wire {

std::size_t put_immediate(std::byte* out, std::uint64_t immediate) {
  store64(out, immediate);
  return kImmediateBytes;
}

std::uint64_t read_immediate(const std::byte* in) {
  return load64(in);
}

std::size_t put_put_lead(std::byte* out, std::uint8_t kind, const PutLead& lead) {
  const std::size_t at = has_immediate(kind) ? put_immediate(out, lead.immediate) : 0;
  store64(out + at, lead.offset);
  return at + kPutLeadBytes;
}

PutLead read_put_lead(const std::byte* in, std::uint8_t kind) {
  if (!has_immediate(kind)) return {.offset = load64(in)};
  return {.immediate = load64(in), .offset = load64(in + kImmediateBytes)};
}

std::size_t put_get_lead(std::byte* out, const GetLead& lead) {
  store64(out, lead.offset);
  store64(out + 8, lead.length);
  return kGetLeadBytes;
}

GetLead read_get_lead(const std::byte* in) {
  return {.offset = load64(in), .length = load64(in + 8)};
}

std::size_t put_atomic_lead(std::byte* out, const AtomicLead& lead) {
  store64(out, lead.offset);
  store8(out + 8, lead.op);
  store8(out + 9, lead.type);
  store8(out + 10, lead.fetches ? 1 : 0);
  store8(out + 11, 0);
  store32(out + 12, lead.count);
  return kAtomicLeadBytes;
}

std::optional<AtomicLead> read_atomic_lead(const std::byte* in) {
  if (load8(in + 10) > 1 || load8(in + 11) != 0) return std::nullopt;
  return AtomicLead{.offset = load64(in),
                    .op = load8(in + 8),
                    .type = load8(in + 9),
                    .fetches = load8(in + 10) == 1,
                    .count = load32(in + 12)};
}

}  // namespace pullman::wire
