#include "ofi/wait_set.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/fids.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

// The longest sleep: a member that several threads share may lose its wake-up to another thread.
constexpr int kSetNapMs = 1;

WaitSet& set_of(fid* plain) {
  return object_of<WaitSet, fid_wait>(plain);
}

}  // namespace

WaitSet::WaitSet() : fid_wait{}, waiter_(std::make_shared<Waiter>()) {
  static fi_ops object =
      table_of({.close = [](struct fid* plain) -> int {
                  WaitSet& set = set_of(plain);
                  if (!set.members_.empty()) return -FI_EBUSY;
                  delete &set;
                  return 0;
                },
                .control = [](struct fid* plain, int command, void* argument) -> int {
                  if (command != FI_GETWAIT || argument == nullptr) return -FI_ENOSYS;
                  *static_cast<int*>(argument) = set_of(plain).waiter_->descriptor();
                  return 0;
                }});
  static fi_ops_wait operations{
      .size = sizeof(fi_ops_wait),
      .wait = [](fid_wait* set, int timeout) { return WaitSet::from(set)->wait(timeout); }};
  fid = {.fclass = FI_CLASS_WAIT, .context = nullptr, .ops = &object};
  ops = &operations;
}

int WaitSet::open(fid_fabric*, fi_wait_attr* attributes, fid_wait** out) {
  return guarded([&]() -> int {
    const fi_wait_obj kind = attributes != nullptr ? attributes->wait_obj : FI_WAIT_UNSPEC;
    if (kind != FI_WAIT_UNSPEC && kind != FI_WAIT_FD) return -FI_ENOSYS;
    *out = new WaitSet();
    return 0;
  });
}

void WaitSet::add(Waitable& member) {
  const std::lock_guard locked(mutex_);
  members_.push_back(&member);
}

void WaitSet::remove(Waitable& member) {
  const std::lock_guard locked(mutex_);
  std::erase(members_, &member);
}

bool WaitSet::look(bool& asleep) {
  const std::lock_guard members(mutex_);
  for (Waitable* member : members_) {
    Locked locked(member->lock());
    if (!member->prepare_wait()) asleep = false;
    if (member->has_news()) return true;
  }
  return false;
}

int WaitSet::wait(int timeout_ms) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    bool asleep = true;
    waiter_->silence();  // the reason of the ring is checked next, or was for another thread
    if (look(asleep)) return 0;
    if (timeout_ms >= 0 && steady_clock::now() >= end) return -FI_ETIMEDOUT;
    if (asleep) waiter_->wait(kSetNapMs);
  }
}

}  // namespace pullman::ofi
