// What a peer's puts, gets and atomics do to regions of this process when their turns come
// (wire.md 10). Nothing the peer says is believed before Regions has checked it.
//
// Says of each message whether it was refused, and whether a RESULT is to tell its sender. Does not
// know how messages arrive, nor how answers leave.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "message/allowance.h"
#include "message/rx/in_message.h"
#include "message/rx/regions.h"
#include "message/rx/remote_operations.h"
#include "wire/kind.h"

namespace pullman::message {

// An atomic as it came, out of its message's memory.
struct AtomicRequest {
  explicit AtomicRequest(const InMessage& message);

  std::optional<wire::AtomicLead> lead;  // nothing: it means nothing
  std::array<std::byte, wire::kMaxAtomicBytes> operands;
  std::size_t operand_bytes = 0;
};

class RmaTarget {
 public:
  RmaTarget(Regions& regions, RemoteOperations& remote, PeerId peer)
      : regions_(regions), remote_(remote), peer_(peer) {}

  // A put, whose lead has come: where the bytes behind it go; none if it is refused.
  std::span<std::byte> begin_put(InMessage& put);
  // All of it has come: counts it, and leaves an event if it has immediate data.
  void end_put(InMessage& put);
  // It is not written any more.
  static void leave_region(InMessage& put);

  // The charge of what is answered goes back to the allowance with the answer.
  void answer_get(InMessage& get, const wire::GetLead& lead, AllowanceGranted& allowance);
  void execute(InMessage& atomic, const AtomicRequest& request, AllowanceGranted& allowance);

 private:
  RemoteOperations::Asker asker_of(InMessage& message, AllowanceGranted& allowance) const;

  Regions& regions_;
  RemoteOperations& remote_;
  PeerId peer_;
};

}  // namespace pullman::message
