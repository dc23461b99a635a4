// The caller's memory for one message to many peers: Context::send() to a span of them.
//
// The message is memory that all the sends share, the program may, too, and the last of them lets
// go: its bytes are copied once, by who makes it, or not at all. (Bytes that fit a packet are
// copied into one for each peer, as those of any send are.)
// Ownership: as Request: the caller keeps it alive, unmoved, until done(). Finished, it can be used
// again; it allocates only when there are more peers than ever before. Threads: as the context it
// was given to. Errors: send() throws std::bad_alloc, and nothing has happened; status() says how
// the sends ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "pullman/status.h"

namespace pullman {

// Nobody changes the bytes as long as a send refers to them.
using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

class __attribute__((visibility("default"))) MultiRequest {
 public:
  MultiRequest();
  // Aborts if a send is still pending, as ~Request() does.
  ~MultiRequest();
  MultiRequest(const MultiRequest&) = delete;
  MultiRequest& operator=(const MultiRequest&) = delete;

  // With every peer. From then on the message is not referred to.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // kPending until done; then kOk, or how the first that failed did, in the order of the peers.
  Status status() const;

  // How many peers there were, and what became of the send to each.
  std::size_t peers() const;
  Status status(std::size_t index) const;

  // What the library remembers of it. Defined in the library only.
  class State;

 private:
  std::atomic<bool> done_ = true;  // the last thing that is written
  std::unique_ptr<State> state_;   // once it was used
};

}  // namespace pullman
