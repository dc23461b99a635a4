// The unfinished sends of one outbox: all of them, and by message id those that have one. Does not
// know their stages.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>

#include "base/check.h"
#include "base/sequence.h"
#include "message/operation.h"

namespace pullman::message {

class SendTable {
 public:
  void add(Operation& op) { all_.push_back(op); }
  // It has an id, higher than those of all sends before.
  void note_id(Operation& op) { by_id_.push_back(op); }
  void remove(Operation& op) {
    if (op.by_id.is_linked()) by_id_.erase(by_id_.iterator_to(op));
    all_.erase(all_.iterator_to(op));
  }

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  // Returns null if it is finished, or never existed.
  Operation* find(MessageId id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &*found;
  }
  // Returns the lowest id, or `none` if no send has one.
  MessageId oldest_id(MessageId none) const {
    return by_id_.empty() ? none : by_id_.begin()->message;
  }

  // Calls visit(operation) for each, in the order in which they were added; it may remove that one.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (auto at = all_.begin(); at != all_.end();) visit(*at++);
  }

  // Finishes all with `status`. No packet may refer to any.
  void fail(Status status) {
    by_id_.clear();
    while (!all_.empty()) {
      Operation& op = all_.front();
      all_.pop_front();
      PULLMAN_CHECK(op.packets == 0);
      op.finish(status, 0);
    }
  }

 private:
  using All =
      boost::intrusive::list<Operation,
                             boost::intrusive::member_hook<Operation, QueueHook, &Operation::all>,
                             boost::intrusive::constant_time_size<true>>;
  struct IdOf {
    using type = MessageId;
    MessageId operator()(const Operation& op) const { return op.message; }
  };
  using ById = boost::intrusive::set<
      Operation, boost::intrusive::member_hook<Operation, IdHook, &Operation::by_id>,
      boost::intrusive::key_of_value<IdOf>, boost::intrusive::constant_time_size<false>>;

  All all_;
  ById by_id_;
};

}  // namespace pullman::message
