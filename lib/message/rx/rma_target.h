// Executes a peer's puts, gets and atomics on regions of this process when their turns come
// (wire.md 10). Regions checks everything that the peer claims.
//
// Tells for each message whether it was refused, and whether its sender is sent a RESULT. Does not
// know how messages arrive, nor how answers are sent.
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

// An atomic as it arrived, copied out of its message's memory.
struct AtomicRequest {
  explicit AtomicRequest(const InMessage& message);

  std::optional<wire::AtomicLead> lead;  // nothing if it is invalid
  std::array<std::byte, wire::kMaxAtomicBytes> operands;
  std::size_t operand_bytes = 0;
};

class RmaTarget {
 public:
  RmaTarget(Regions& regions, RemoteOperations& remote, PeerId peer)
      : regions_(regions), remote_(remote), peer_(peer) {}

  // Returns where the bytes behind a put's lead go; none if it is refused. The lead must have
  // arrived.
  std::span<std::byte> begin_put(InMessage& put);
  // All of it has arrived: counts it, and leaves an event if it has immediate data.
  void end_put(InMessage& put);
  // Takes the put out of its region's list: it is not written any more.
  static void leave_region(InMessage& put);

  // Each answers later: the message's charge is returned to the allowance with the answer.
  void answer_get(InMessage& get, const wire::GetLead& lead, AllowanceGranted& allowance);
  void execute(InMessage& atomic, const AtomicRequest& request, AllowanceGranted& allowance);

 private:
  RemoteOperations::Asker asker_of(InMessage& message, AllowanceGranted& allowance) const;

  Regions& regions_;
  RemoteOperations& remote_;
  PeerId peer_;
};

}  // namespace pullman::message
