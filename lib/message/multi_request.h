// The library's state of one message to many peers (pullman/multi_request.h): a request for the
// send to each peer, and the bytes that all of them refer to.
//
// Does not know how anything is sent. Threads: one thread begins it; the sends may finish in any
// thread of the context.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "pullman/multi_request.h"
#include "pullman/request.h"

namespace pullman {

class MultiRequest::State {
 public:
  explicit State(MultiRequest& whole) : whole_(whole) {}

  // Makes the state at the first call. Throws std::bad_alloc: then nothing has happened.
  static State& of(MultiRequest& request);

  // A caller calls begin(), starts a send with each request(), and calls end(), which returns
  // MultiRequest::status(). begin() throws std::bad_alloc: then nothing has happened.
  void begin(std::size_t peers, SharedBytes message);
  Request& request(std::size_t index) { return requests_[index]; }
  const std::vector<std::byte>& message() const { return *message_; }
  std::size_t peers() const { return peers_; }
  Status end();

 private:
  static void note_done(Request& request);
  void count_down();

  MultiRequest& whole_;
  std::unique_ptr<Request[]> requests_;
  std::size_t room_ = 0;  // length of `requests_`
  std::size_t peers_ = 0;
  SharedBytes message_;
  std::atomic<std::size_t> left_ = 0;  // sends that are not done, and one until end()
};

}  // namespace pullman
