// Sends that cannot be admitted now, for want of ids, allowance or packets. They wait by reference
// in the caller's own Request, so waiting costs no memory and has no limit of its own.
//
// They wait in the order of send(): the first that cannot be admitted holds back all behind it.
// Answers that the peer asked for wait in a queue of their own, which no other send holds back: the
// peer waits for them, and may have to before it takes more.
#pragma once

#include "message/operation.h"
#include "message/tx/send_stage.h"

namespace pullman::message {

class WaitingSends {
 public:
  void add(Operation& op) {
    set_stage(op, SendStage::kWaiting);
    (op.special.is_solicited ? solicited_ : in_order_).push_back(op);
  }

  bool empty() const { return in_order_.empty() && solicited_.empty(); }
  // If so, no unsolicited message may be sent before them.
  bool has_in_order() const { return !in_order_.empty(); }
  // The first of each kind; null if there is none.
  Operation* first_in_order() { return in_order_.empty() ? nullptr : &in_order_.front(); }
  const Operation* first_in_order() const {
    return in_order_.empty() ? nullptr : &in_order_.front();
  }
  Operation* first_solicited() { return solicited_.empty() ? nullptr : &solicited_.front(); }
  const Operation* first_solicited() const {
    return solicited_.empty() ? nullptr : &solicited_.front();
  }

  // It need not wait any longer.
  void remove(Operation& op) {
    SendQueue& queue = op.special.is_solicited ? solicited_ : in_order_;
    queue.erase(queue.iterator_to(op));
  }
  void clear() {
    in_order_.clear();
    solicited_.clear();
  }

 private:
  SendQueue in_order_;
  SendQueue solicited_;
};

}  // namespace pullman::message
