// Gets and atomics of this process whose peer has not answered yet. One per peer.
//
// What asks is a message of its own; this is what the answer goes to: an ANSWER message, or a
// RESULT. Does not know how either comes.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>

#include "base/sequence.h"
#include "pullman/request.h"

namespace pullman::message {

class Asked {
 public:
  static constexpr MessageId kNotSent = 0;  // no message has that id (wire.md 2.4: they are large)

  Asked() = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  // The operation's message is the one that asks, or kNotSent as long as it has no id.
  void add(detail::Operation& op) { list_.push_back(op); }

  // The one whose question has that id; null if there is none. Answers come about in the order of
  // questions.
  Request* find(MessageId id) {
    for (detail::Operation& op : list_) {
      if (op.message == id) return op.request;
    }
    return nullptr;
  }

  void remove(Request& request) { list_.erase(list_.iterator_to(request.operation())); }

  // The peer is gone.
  void fail(Status status) {
    while (!list_.empty()) {
      detail::Operation& op = list_.front();
      list_.pop_front();
      op.request->finish(status, 0);
    }
  }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }

 private:
  using List =
      boost::intrusive::list<detail::Operation,
                             boost::intrusive::member_hook<detail::Operation, detail::QueueHook,
                                                           &detail::Operation::queue>,
                             boost::intrusive::constant_time_size<true>>;
  List list_;
};

}  // namespace pullman::message
