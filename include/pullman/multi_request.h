// The caller's memory for one message to many peers: Context::send() to a span of them.
//
// The message is memory that all the sends share, the program may, too, and the last of them lets
// go: its bytes are copied once, by who makes it, or not at all. (Bytes that fit a packet are
// copied into one for each peer, as those of any send are.)
// Ownership: as Request: the caller keeps it alive, unmoved, until done(). Finished, it can be used
// again; it allocates only when there are more peers than ever before. Threads: as the context it
// was given to.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "pullman/request.h"
#include "pullman/status.h"

namespace pullman {

// Nobody changes the bytes as long as a send refers to them.
using SharedBytes = std::shared_ptr<const std::vector<std::byte>>;

class __attribute__((visibility("default"))) MultiRequest {
 public:
  MultiRequest() = default;
  // Aborts if a send is still pending, as ~Request() does.
  ~MultiRequest() = default;
  MultiRequest(const MultiRequest&) = delete;
  MultiRequest& operator=(const MultiRequest&) = delete;

  // With every peer. From then on the message is not referred to.
  bool done() const { return done_.load(std::memory_order_acquire); }

  // kPending until done; then kOk, or how the first that failed did, in the order of the peers.
  Status status() const;

  // How many peers there were, and what became of the send to each.
  std::size_t peers() const { return peers_; }
  Status status(std::size_t index) const { return requests_[index].status(); }

  // For the library. begin(), a send for each request(), and end(): which says what status() does.
  void begin(std::size_t peers, SharedBytes message);
  Request& request(std::size_t index) { return requests_[index]; }
  const std::vector<std::byte>& message() const { return *message_; }
  Status end();

 private:
  static void note_done(Request& request);
  void count_down();

  std::unique_ptr<Request[]> requests_;
  std::size_t room_ = 0;  // requests there are
  std::size_t peers_ = 0;
  SharedBytes message_;
  std::atomic<std::size_t> left_ = 0;  // sends that are not done, and one for who begins them
  std::atomic<bool> done_ = true;      // the last thing that is written
};

}  // namespace pullman
