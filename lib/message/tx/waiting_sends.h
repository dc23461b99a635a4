// Sends that cannot be admitted now: ids, allowance or packets are used up. They wait by reference
// in the caller's own Request, so waiting costs no memory and has no limit of its own.
//
// In the order of send(): the first that cannot be admitted holds back all behind it. What the peer
// asked for stands in a queue of its own: the peer waits for it, and may have to before it takes
// more, so no other send holds it back.
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
  // Nothing that was not asked for may leave before them.
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
