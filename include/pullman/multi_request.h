// The caller's memory for one message to many peers, as sent by Context::send() to a span of peers.
//
// All the sends share the memory of the message, perhaps with the program, and the last owner frees
// it, so the library does not copy it for each peer. (A message that fits a packet is copied into a
// packet for each peer, as in any send.)
// Ownership: as for Request, the caller keeps it alive, unmoved, until done(). It can then be used
// again, and allocates only when there are more peers than ever before. Threads: as the context it
// was given to. Errors: send() throws std::bad_alloc, without any effect; status() says how the
// sends ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "pullman/status.h"

namespace pullman {

// Nobody changes the bytes as long as a send refers to them.
using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

// The sends of one message to many peers.
class __attribute__((visibility("default"))) MultiRequest {
 public:
  // Makes one that is done: nothing was sent yet.
  MultiRequest();
  // Aborts if a send is still pending, as ~Request() does.
  ~MultiRequest();
  MultiRequest(const MultiRequest&) = delete;
  MultiRequest& operator=(const MultiRequest&) = delete;

  // Returns true if the sends to all peers are done. The library then no longer uses the message.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // Returns kPending until done; then kOk, or the first failure in the order of the peers.
  Status status() const;

  // Returns the number of peers.
  std::size_t peers() const;
  // Returns the status of the send to one of them.
  Status status(std::size_t index) const;

  // The library's state of the sends. Defined in the library only.
  class State;

 private:
  std::atomic<bool> done_ = true;  // written last when it becomes done
  std::unique_ptr<State> state_;   // null before its first use
};

}  // namespace pullman
