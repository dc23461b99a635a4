// The timers of peers and rails that are not an ACK's: one hotel for all of them.
#pragma once

#include <algorithm>

#include "base/check.h"
#include "base/time.h"
#include "engine/peer/peer_queries.h"
#include "reliability/hotel.h"

namespace pullman::engine {

class Alarms {
 public:
  void check_in(Instant now, Duration stay, Timer& timer) {
    PULLMAN_DCHECK(timer.purpose() != TimerPurpose::kNone);
    hotel_.check_in(now, stay, timer);
  }
  void cancel(Timer& timer) {
    if (timer.checked_in()) hotel_.check_out(timer);
  }
  void rearm(Instant now, Duration stay, Timer& timer) {
    cancel(timer);
    check_in(now, std::max(stay, Duration(1)), timer);
  }
  // The rail's next question is due when its health says.
  void arm_upkeep(Instant now, Rail& rail);
  // The peer's rails rested while nothing was to be done with it.
  void wake_rails(Instant now, Peer& peer);
  // When a gap is a loss.
  void arm_loss(Instant now, Rail& rail);

  // One that is due, or null.
  Timer* evict(Instant now) { return hotel_.evict(now); }
  Instant next_due() const { return hotel_.next_due(); }

 private:
  reliability::Hotel<Timer> hotel_;
};

}  // namespace pullman::engine
