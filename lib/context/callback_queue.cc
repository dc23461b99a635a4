#include "context/callback_queue.h"

namespace pullman {
namespace {

// The queues whose callbacks this thread is in, the innermost first.
struct Calling {
  explicit Calling(const CallbackQueue& of) : queue(&of), outer(std::exchange(innermost, this)) {}
  ~Calling() { innermost = outer; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

  static bool is_in(const CallbackQueue& queue) {
    const Calling* one = innermost;
    while (one != nullptr && one->queue != &queue) one = one->outer;
    return one != nullptr;
  }

  const CallbackQueue* const queue;
  Calling* const outer;
  static thread_local Calling* innermost;
};

thread_local Calling* Calling::innermost = nullptr;

}  // namespace

bool CallbackQueue::is_in_callback() const {
  return Calling::is_in(*this);
}

void CallbackQueue::remove(CallbackRequest::State& state) {
  if (gate_.is_inherited()) return;
  Gate::Hold held(gate_);
  due_.erase(due_.iterator_to(state));
}

void CallbackQueue::call(Gate::Hold& held) {
  if (is_in_callback()) return;
  const Calling here(*this);
  for (std::size_t left = due_.size(); left > 0 && !due_.empty(); --left) {
    auto state = due_.front().shared_from_this();
    due_.pop_front();
    const bool is_own = &state->request == own_;
    const std::uint64_t calls = gate_.calls();
    held.leave_for([&state] {
      // The request may be destroyed by its callback, which lives on until it returns. Then it ends
      // here, since what it has captured may call the context, too.
      const auto last = std::move(state);
      last->callback(last->request);
    });
    // A callback of the program's is as good as a call.
    gate_.set_calls(is_own ? calls : gate_.calls() + 1);
    if (gate_.is_inherited()) Gate::refuse();  // a child of fork() came back from there
  }
}

}  // namespace pullman
