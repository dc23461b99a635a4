#include "ofi/endpoint/progress.h"

#include "ofi/shared_receive.h"

namespace pullman::ofi {

bool EndpointProgress::step_in() {
  if (!transport_.is_open()) return true;
  const bool nothing = transport_->prepare_wait();
  if (is_target_) remote_access_.report();
  const bool refilled = multi_receiver_.is_refill_due();
  if (refilled) multi_receiver_.refill();
  const bool matched = shared_ != nullptr && shared_->match(SharedReceiveContext::Orphans::kFail);
  return !triggers_.run() && !refilled && !matched && nothing;
}

void EndpointProgress::match_shared(bool has_news) {
  const bool check_orphans = activity_.turns() % kTurnsPerOrphanCheck == 0;
  using Orphans = SharedReceiveContext::Orphans;
  if (has_news || check_orphans) shared_->match(check_orphans ? Orphans::kFail : Orphans::kKeep);
}

}  // namespace pullman::ofi
