// Gets and atomics of this process that the peer has not answered yet. One per peer.
//
// Each was sent as a message of its own. Holds the request that gets its answer, an ANSWER message
// or a RESULT; does not know how that arrives.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>

#include "base/sequence.h"
#include "message/operation.h"
#include "pullman/request.h"

namespace pullman::message {

class PendingRequests {
 public:
  static constexpr MessageId kNotSent = 0;  // no message has that id (wire.md 2.4: they are large)

  PendingRequests() = default;
  PendingRequests(const PendingRequests&) = delete;
  PendingRequests& operator=(const PendingRequests&) = delete;

  // The operation's message id is that of its request's message, or kNotSent until that has one.
  void add(Operation& op) { list_.push_back(op); }

  // Returns the request whose message has that id, or null. A linear search is enough, since
  // answers come about in the order of requests.
  Request* find(MessageId id) {
    for (Operation& op : list_) {
      if (op.message == id) return op.request;
    }
    return nullptr;
  }

  void remove(Request& request) { list_.erase(list_.iterator_to(Operation::of(request))); }

  // The peer is gone: all finish with `status`.
  void fail(Status status) {
    while (!list_.empty()) {
      Operation& op = list_.front();
      list_.pop_front();
      op.finish(status, 0);
    }
  }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }

 private:
  using List =
      boost::intrusive::list<Operation,
                             boost::intrusive::member_hook<Operation, QueueHook, &Operation::all>,
                             boost::intrusive::constant_time_size<true>>;
  List list_;
};

}  // namespace pullman::message
