// A message that has begun to arrive: the inbox's state of it until it is complete and matched.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "message/match/unexpected.h"
#include "message/rx/range_set.h"

namespace pullman {
class Request;
}

namespace pullman::message {

struct Region;

struct InMessage : Unexpected {
  explicit InMessage(std::pmr::memory_resource* memory)
      : Unexpected(Form::kWhole), arrived(memory) {}

  IdHook by_id;                 // in the inbox's set of incomplete messages
  std::uint64_t wanted = 0;     // bytes that the sender will send; complete with them
  std::uint64_t immediate = 0;  // a put's, while kFilling, if its kind has one
  // While kFilling: where the bytes behind the lead go; null if the request has several segments.
  // Before: memory for the bytes that have arrived, lead included; null if there are none.
  std::byte* bytes = nullptr;
  std::size_t room = 0;          // bytes at `bytes`
  union {                        // while kFilling
    Request* receive = nullptr;  // for messages and answers
    Region* region;              // for puts, unless refused
  };
  RangeSet arrived;

  bool complete() const {
    if (wanted != 0) return arrived.prefix() >= wanted;
    return total == 0 || (announced && state == InState::kFilling);
  }

  // Drops the bytes that still arrive.
  void refuse() {
    bytes = nullptr;
    room = 0;
    region = nullptr;
    refused = true;
  }

  // Returns how many ranges beyond the prefix are remembered. A packet that needs one more is
  // treated as lost. No honest sender needs more: its chunks are not that short.
  std::size_t max_ranges() const {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(RangeSet::kMaxRanges, 1 + wanted / kBytesPerRange));
  }
};

inline bool is_short(const Unexpected& message) {
  return message.form == Form::kShort;
}
inline ShortMessage& as_short(Unexpected& message) {
  return static_cast<ShortMessage&>(message);
}
inline InMessage& as_whole(Unexpected& message) {
  return static_cast<InMessage&>(message);
}
inline bool has_lead(const Unexpected& message) {
  return is_short(message) ||
         static_cast<const InMessage&>(message).arrived.prefix() >= wire::lead_bytes(message.kind);
}
// Returns its first bytes, if has_lead().
inline const std::byte* lead_of(const Unexpected& message) {
  return is_short(message) ? static_cast<const ShortMessage&>(message).bytes.data()
                           : static_cast<const InMessage&>(message).bytes;
}

// The charge covers what the allocator takes for a message of any length: its InMessage, the first
// range (charge_of() covers the others), at most 16 bytes of overhead for each of the three blocks,
// and a bucket.
static_assert(sizeof(Range) == kRangeBytes);
static_assert(sizeof(InMessage) + sizeof(Range) + 3 * 16 + sizeof(void*) <= kMessageCharge);

}  // namespace pullman::message
