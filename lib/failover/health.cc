#include "failover/health.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pullman::failover {

void Health::begin(Instant now) {
  if (state_ == RailState::kDrained) return;
  set(now, RailState::kDown, RailReason::kNew);
  needed_ = 1;
  asked_at_ = now;
  due_ = now;
}

void Health::handle_unresolved(Instant now) {
  if (state_ == RailState::kDrained) return;
  set(now, RailState::kDown, RailReason::kResolve);
  due_ = now + pause_;
}

void Health::begin_up(Instant now) {
  set(now, RailState::kUp, RailReason::kAnswers);
}

void Health::set(Instant now, RailState state, RailReason reason) {
  state_ = state;
  reason_ = reason;
  since_ = now;
}

double Health::penalty(Instant now) const {
  const double lives = std::chrono::duration<double>(now - penalty_at_) / kHalfLife;
  return penalty_ * std::exp2(-lives);
}

// Returns the interval of probes to a suspect rail. It is short, since the timeout of the overdue
// packet has allowed for the variation of the RTT, and three probes are sent.
Duration Health::interval(Pace pace) {
  const Duration two = pace.rtt == Duration(0) ? pace.timeout : 2 * pace.rtt;
  return std::clamp(std::min(pace.timeout, two), kLeastInterval, kMaxInterval);
}

bool Health::handle_silence(Instant now, Pace pace, Duration waited) {
  if (state_ != RailState::kUp) return false;
  set(now, RailState::kSuspect, RailReason::kSilent);
  // The packet's own timeout has just caused the first probe (reliability/link.h).
  questions_ = 1;
  witnessed_ = false;
  asked_at_ = now;
  overdue_ = now - waited;
  alive_at_ = kNever;
  confirmations_ = 0;
  pause_ = first_pause_ = interval(pace);
  due_ = now + pause_;
  return true;
}

bool Health::handle_answer(Instant now, Instant sent_at, Pace pace, bool alone) {
  if (state_ == RailState::kUp || state_ == RailState::kDrained) return false;
  if (state_ == RailState::kSuspect) {
    took_ = std::min(now - overdue_, kLongestPatience);
    come_back(now);
    return true;
  }
  if (!waiting_ || sent_at < asked_at_) return false;  // sent before it went down
  // A peer that polls rarely answers all probes since its last poll by one ACK, and the link takes
  // its RTT sample from the newest. By the resulting timeout alone every other probe would be
  // missed for ever, so the timeout is doubled.
  if (std::exchange(missed_, false) && doublings_ < kMaxDoublings) ++doublings_;
  waiting_ = false;
  pause_ = kFirstPause;
  if (lateness_ == Lateness::kPossible) lateness_ = Lateness::kLikely;
  if (good_ < needed_) ++good_;
  if (good_ >= needed_ && lateness_ == Lateness::kLikely) pardon();
  if (alone || (good_ >= needed_ && !damped(now))) {
    come_back(now);
    return true;
  }
  due_ = now + (damped_ ? kDampedPause : interval(pace));
  if (state_ == RailState::kProbing) return false;
  state_ = RailState::kProbing;
  since_ = now;
  return true;
}

bool Health::still_heard(Instant now, Instant heard_at) const {
  return heard_at >= asked_at_ && now - heard_at < std::max(kHeardLately, 2 * first_pause_);
}

bool Health::handle_witness(Instant now, const Witness& witness) {
  const Instant sent_at = witness.sent_at;
  if (state_ != RailState::kSuspect || sent_at < asked_at_) return false;
  if (alive_at_ == kNever) {
    // The peer may have been silent on all rails until now, so only later probes count.
    alive_at_ = now;
    questions_ = 1;
    pause_ = first_pause_;
    due_ = std::min(due_, now + pause_);
    return true;
  }
  if (sent_at < alive_at_ || questions_ < kQuestions) return false;
  const bool may_be_late = witness.crowded || still_heard(now, witness.heard_at);
  if (may_be_late && now - alive_at_ < kLatePatience) return false;
  if (confirmations_ != 0 && sent_at <= confirmed_at_) return false;
  if (confirmations_ < kConfirmations) {
    ++confirmations_;
    confirmed_at_ = now;
    pause_ = first_pause_;
    due_ = now;  // all rails are probed, so that there is a next witness soon
    return true;
  }
  witnessed_ = true;
  due_ = now + Duration(1);  // in the next turn, behind what it reads
  return true;
}

bool Health::leave(Instant now, RailReason reason) {
  const bool of_link = reason == RailReason::kLinkDown || reason == RailReason::kAddressGone;
  if (of_link) link_down_ = true;
  if (reason == RailReason::kOperator) drained_ = true;
  if (state_ == RailState::kDrained) return false;
  if (drained_) {
    witnessed_ = false;
    set(now, RailState::kDrained, RailReason::kOperator);
    due_ = kNever;
    return true;
  }
  const bool left_before = !usable();
  if (left_before) {
    if (of_link) {
      set(now, RailState::kDown, reason);
      lateness_ = Lateness::kExcluded;
    }
    good_ = 0;
    return false;
  }
  go_down(now, reason);
  return true;
}

void Health::keep_out(Instant now) {
  drained_ = true;
  witnessed_ = false;
  set(now, RailState::kDrained, reason_);
  due_ = kNever;
}

bool Health::handle_link_up(Instant now) {
  link_down_ = false;
  return !drained_ && allow(now);
}

// The penalty for having gone down remains.
bool Health::allow(Instant now) {
  link_down_ = drained_ = false;
  lateness_ = Lateness::kExcluded;
  if (usable()) return false;
  if (state_ == RailState::kDrained) set(now, RailState::kDown, reason_);
  pause_ = kFirstPause;
  due_ = now + kSettling;
  return true;
}

void Health::ask_at_once(Instant now) {
  if (state_ != RailState::kDown || link_down_ || drained_) return;
  pause_ = kFirstPause;
  due_ = now;
}

void Health::go_down(Instant now, RailReason reason) {
  const bool silent = reason == RailReason::kSilent || reason == RailReason::kSilentThere;
  lateness_ = silent ? Lateness::kPossible : Lateness::kExcluded;
  was_damped_ = damped_;
  penalty_before_ = penalty(now);
  penalty_ = std::min(kPenaltyMost, penalty_before_ + 1);
  penalty_at_ = now;
  damped_ = penalty_ >= kPenaltyCut;
  set(now, RailState::kDown, reason);
  needed_ = reason == RailReason::kLossy ? kManyGoodAnswers : kGoodAnswers;
  good_ = 0;
  waiting_ = witnessed_ = missed_ = false;
  doublings_ = 0;
  asked_at_ = now;
  pause_ = kFirstPause;
  due_ = now + pause_;
}

// Takes back what the last time it was left has cost.
void Health::pardon() {
  lateness_ = Lateness::kExcluded;
  penalty_ = penalty_before_;
  damped_ = was_damped_;
}

// An answer over the rail itself overrides the NIC's link state, which the kernel may report a
// second late.
void Health::come_back(Instant now) {
  link_down_ = false;
  set(now, RailState::kUp, RailReason::kAnswers);
  witnessed_ = false;
  due_ = kNever;
}

bool Health::damped(Instant now) {
  if (damped_ && penalty(now) < kPenaltyReuse) damped_ = false;
  if (damped_) reason_ = RailReason::kFlapping;
  return damped_;
}

bool Health::handle_due(Instant now, Pace pace) {
  if (due_ > now) return false;
  if (state_ == RailState::kUp || state_ == RailState::kDrained) {
    due_ = kNever;
    return false;
  }
  if (witnessed_) {
    go_down(now, RailReason::kSilent);
    return false;
  }
  if (state_ == RailState::kSuspect) {
    // The probes to a peer that is busy or gone become rarer.
    if (questions_ < kQuestions) {
      ++questions_;
    } else {
      pause_ = std::min(2 * pause_, kLongestPause);
    }
    due_ = now + pause_;
    return true;
  }
  if (waiting_) miss(now);
  waiting_ = true;
  due_ = now + patience(pace);
  return true;
}

Duration Health::patience(Pace pace) const {
  const Duration once = pace.rtt == Duration(0) ? pause_ : std::min(pace.timeout, kLongestPause);
  const Duration usual = std::max(pause_, std::min(once * (1 << doublings_), kLongestPatience));
  return lateness_ == Lateness::kPossible ? std::max(usual, kMaxLateness) : usual;
}

// The last probe was not answered in time.
void Health::miss(Instant now) {
  good_ = 0;
  // The first probe may still be answered if the next one was sent early (ask_at_once).
  const bool early = now - asked_at_ < kFirstPause + kMaxLateness;
  if (lateness_ != Lateness::kPossible || !early) lateness_ = Lateness::kExcluded;
  missed_ = true;
  pause_ = std::min(2 * pause_, kLongestPause);
  if (state_ != RailState::kProbing) return;
  state_ = RailState::kDown;
  since_ = now;
}

}  // namespace pullman::failover
