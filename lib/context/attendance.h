// A callback that the library itself has called behind turns, every few milliseconds as long as
// turns are made. Its descriptor, which is among those that end a sleep, brings a turn when there
// is something to do for it. Does not know what is done.
//
// CallLength notes since when a call of the program waits.
#pragma once

#include <optional>

#include "base/time.h"
#include "pullman/callback_request.h"

namespace pullman {

// Threads: behind the gate's lock.
class Attendance {
 public:
  // The request is of the context, and there until end().
  void begin(CallbackRequest& what) {
    what_ = &what;
    due_ = Instant::min();
  }
  void end() { due_ = kNever; }

  bool due(Instant now) const { return now >= due_; }
  // It is due. Puts the callback on its queue.
  void call(Instant now) {
    due_ = now + kInterval;
    what_->on_done(*what_);
  }

 private:
  // While a question waits nobody sleeps, so it is short; each time costs a system call.
  static constexpr Duration kInterval = std::chrono::milliseconds(5);

  CallbackRequest* what_ = nullptr;
  Instant due_ = kNever;
};

// Threads: behind the gate's lock.
class CallLength {
 public:
  // A call that waits, as long as this lives.
  class Noted {
   public:
    Noted(CallLength& length, Instant now) : length_(length) {
      if (length_.calls_++ == 0) length_.begun_ = now;
    }
    ~Noted() { --length_.calls_; }
    Noted(const Noted&) = delete;
    Noted& operator=(const Noted&) = delete;

   private:
    CallLength& length_;
  };

  // Returns since when there is always one, or nothing if there is none.
  std::optional<Instant> begun() const {
    return calls_ == 0 ? std::nullopt : std::optional(begun_);
  }

 private:
  unsigned calls_ = 0;
  Instant begun_{};
};

}  // namespace pullman
