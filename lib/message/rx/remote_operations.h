// What the inbox needs of gets and atomics between this process and one peer: which of ours wait
// for an answer, and a way to send the answers to the peer's.
//
// An interface, because answers are messages: whoever implements it knows the sending side, which
// the receiving side does not (message/rma/one_sided.h). Gets and atomics only: a message calls
// nothing here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/sequence.h"
#include "message/allowance.h"
#include "pullman/request.h"

namespace pullman::message {

class RemoteOperations {
 public:
  // The operation of ours whose message has that id and that is not answered; null: there is none
  // (any more).
  virtual Request* find_pending(MessageId id) = 0;
  // Its answer has begun to arrive: it waits no longer.
  virtual void remove_pending(Request& request) = 0;

  // An operation of the peer's that is to be answered. `charge` goes back to the allowance when
  // the answer has been delivered.
  struct Asker {
    PeerId peer;
    MessageId id = 0;  // of the message that asks
    AllowanceGranted& allowance;
    std::uint64_t charge = 0;
  };
  // Sends bytes that stay where they are, in a region, until they are delivered or the region is
  // removed.
  virtual void answer(const Asker& asker, std::span<const std::byte> bytes) = 0;
  // The same of bytes that are only valid during the call.
  virtual void answer_with_copy(const Asker& asker, std::span<const std::byte> bytes) = 0;

 protected:
  ~RemoteOperations() = default;
};

}  // namespace pullman::message
