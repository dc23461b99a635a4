// Holds all timers of peers and rails but those of ACKs, in one hotel.
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
  // Arms the rail's upkeep timer for Health::next_due(), and on rail 0 for a list of NICs that
  // waits.
  void arm_upkeep(Instant now, Rail& rail);
  // Arms the timers of a peer's rails, which rested while nothing was pending with the peer.
  void wake_rails(Instant now, Peer& peer);
  // Arms the timer for the time at which a gap is a loss.
  void arm_loss(Instant now, Rail& rail);

  // Returns a timer that is due, or null.
  Timer* evict(Instant now) { return hotel_.evict(now); }
  Instant next_due() const { return hotel_.next_due(); }

 private:
  reliability::Hotel<Timer> hotel_;
};

}  // namespace pullman::engine
