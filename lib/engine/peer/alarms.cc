#include "engine/peer/alarms.h"

namespace pullman::engine {

void Alarms::arm_upkeep(Instant now, Rail& rail) {
  RailUpkeep& upkeep = upkeep_of(rail);
  Instant due = upkeep.health.next_due();
  if (rail.number == 0) due = std::min(due, list_due(rail.peer));
  if (upkeep.timer.checked_in()) {
    if (upkeep.timer.due == due) return;
    hotel_.check_out(upkeep.timer);
  }
  if (due == kNever || rail.peer.phase == Phase::kGone) return;
  check_in(now, std::max(due - now, Duration(1)), upkeep.timer);
}

void Alarms::wake_rails(Instant now, Peer& peer) {
  peer.rails->resting = false;
  peer.for_each_rail([&](Rail& rail) { arm_upkeep(now, rail); });
}

void Alarms::arm_loss(Instant now, Rail& rail) {
  const Instant due = rail.link.next_loss_due();
  if (rail.loss_timer.checked_in()) {
    if (due >= rail.loss_timer.due && due != kNever) return;  // it will look again then
    hotel_.check_out(rail.loss_timer);
  }
  if (due != kNever) check_in(now, std::max(due - now, Duration(1)), rail.loss_timer);
}

}  // namespace pullman::engine
