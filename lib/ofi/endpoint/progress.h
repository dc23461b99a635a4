// Makes progress on the packets of an endpoint, and then does what has become possible: refills
// multi-receive buffers, matches shared receives, reports accesses by peers, and starts triggered
// operations. Called by queues and counters for the application, and by the progress thread in its
// place. Under the domain's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ofi/endpoint/activity.h"
#include "ofi/endpoint/multi_receiver.h"
#include "ofi/endpoint/remote_access.h"
#include "ofi/endpoint/transport.h"
#include "ofi/triggers.h"
#include "pullman/context.h"

namespace pullman::ofi {

class SharedReceiveContext;

class EndpointProgress {
 public:
  // Whether peers may reach memory of the domain.
  enum class Target { kNo, kYes };

  EndpointProgress(Transport& transport, Activity& activity, MultiReceiver& multi_receiver,
                   RemoteAccess& remote_access, Triggers& triggers, Target target)
      : transport_(transport),
        activity_(activity),
        multi_receiver_(multi_receiver),
        remote_access_(remote_access),
        triggers_(triggers),
        is_target_(target == Target::kYes) {}

  // Its receives are matched by that context, too.
  void bind(SharedReceiveContext& shared) { shared_ = &shared; }

  // --- For queues and counters.

  void progress() { progress_by(&Context::progress); }
  void progress_again() { progress_by(&Context::progress_again); }
  // Returns true if there is no work; the descriptor becomes readable when there is.
  bool prepare_wait() {
    activity_.note_progress();
    const bool nothing = step_in();
    activity_.set_waiting(nothing);
    return nothing;
  }
  int wait_descriptor() const { return transport_.wait_descriptor(); }
  // A thread sleeps, or may sleep, on the descriptor while others make progress, so it must stay
  // watched.
  void keep_watched() { keeps_watched_ = true; }

  // --- For the progress thread, once the transport is open. Without the lock, except step_in()

  const Activity& activity() const { return activity_; }
  bool has_work() const { return transport_.has_work(); }
  // Does what prepare_wait() does, in the application's place.
  bool step_in();

 private:
  // How often receives from peers that have gone are searched for when no packet moves.
  static constexpr std::uint64_t kTurnsPerOrphanCheck = 1024;
  // How often the context is asked for its descriptor: after more turns it would stop watching it.
  static constexpr std::uint64_t kTurnsPerWatch = 256;

  void progress_by(std::size_t (Context::*turn)()) {
    const std::uint64_t turns = activity_.note_progress();
    if (!transport_.is_open()) return;
    if (keeps_watched_ && turns % kTurnsPerWatch == 0) transport_.wait_descriptor();
    const bool moved = ((*transport_).*turn)() != 0;
    const bool refill_due = multi_receiver_.is_refill_due();
    if (refill_due) multi_receiver_.refill();
    if (shared_ != nullptr) match_shared(moved || refill_due);
    if (is_target_) remote_access_.report();
    triggers_.run();
  }
  void match_shared(bool has_news);

  Transport& transport_;
  Activity& activity_;
  MultiReceiver& multi_receiver_;
  RemoteAccess& remote_access_;
  Triggers& triggers_;
  SharedReceiveContext* shared_ = nullptr;
  const bool is_target_;
  bool keeps_watched_ = false;
};

}  // namespace pullman::ofi
