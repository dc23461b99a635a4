// What the inbox needs of gets and atomics between this process and one peer: which of ours wait
// for an answer, and a way to send our answers to the peer's.
//
// It is an interface, because answers are messages: its implementation knows the sending side,
// which the receiving side does not (message/rma/one_sided.h). Plain messages call nothing here.
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
  // Returns our unanswered operation whose message has that id, or null.
  virtual Request* find_pending(MessageId id) = 0;
  // Its answer has begun to arrive: it is not pending any more.
  virtual void remove_pending(Request& request) = 0;

  // An operation of the peer's that is to be answered. `charge` is returned to the allowance when
  // the answer has been delivered.
  struct Asker {
    PeerId peer;
    MessageId id = 0;  // of the message that asked
    AllowanceGranted& allowance;
    std::uint64_t charge = 0;
  };
  // Sends bytes that stay where they are, in a region, until they are delivered or the region is
  // removed.
  virtual void answer(const Asker& asker, std::span<const std::byte> bytes) = 0;
  // Does the same for bytes that are valid only during the call.
  virtual void answer_with_copy(const Asker& asker, std::span<const std::byte> bytes) = 0;

 protected:
  ~RemoteOperations() = default;
};

}  // namespace pullman::message
