// The callbacks of a context that are due (pullman/callback_request.h).
//
// A request becomes done in the middle of a turn, where nobody may call the engine. So its callback
// is put on this queue, and called when the turn is over, without the lock. Does not know what a
// turn is.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "context/gate.h"
#include "pullman/callback_request.h"

namespace pullman {

class CallbackQueue;

struct CallbackRequest::State : std::enable_shared_from_this<State>,
                                boost::intrusive::list_base_hook<> {
  State(CallbackRequest& whose, CallbackQueue& of_context, Callback what)
      : request(whose), queue(of_context), callback(std::move(what)) {}

  CallbackRequest& request;
  CallbackQueue& queue;
  const Callback callback;
};

// Threads: behind the gate's lock.
class CallbackQueue {
 public:
  explicit CallbackQueue(Gate& gate) : gate_(gate) {}
  // Those that are still due are not called.
  ~CallbackQueue() { due_.clear(); }
  CallbackQueue(const CallbackQueue&) = delete;
  CallbackQueue& operator=(const CallbackQueue&) = delete;

  // Returns true if call_due() would call anything.
  bool any_to_call() const { return !due_.empty() && !is_in_callback(); }
  // Returns true in a callback of this queue.
  bool is_in_callback() const;
  void push(CallbackRequest::State& state) {
    if (!state.is_linked()) due_.push_back(state);
  }
  // Its callback will not be called. Takes the lock; does nothing in a child of fork().
  void remove(CallbackRequest::State& state);

  // Is the library's own, so nothing that its callback calls is a call of the program; null: none.
  void set_own(const CallbackRequest* own) { own_ = own; }

  // Calls, without the lock, those that are due now. What becomes due meanwhile is called next
  // time, since callbacks that begin anew might go on for ever. Does nothing in a callback.
  void call_due(Gate::Hold& held) {
    if (!due_.empty()) [[unlikely]]
      call(held);
  }

 private:
  [[gnu::noinline]] void call(Gate::Hold& held);

  Gate& gate_;
  const CallbackRequest* own_ = nullptr;
  boost::intrusive::list<CallbackRequest::State> due_;
};

}  // namespace pullman
