#include "ofi/waitable.h"

#include <poll.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ofi/endpoint/progress.h"
#include "ofi/wait_set.h"

namespace pullman::ofi {
namespace {

// A queue of more endpoints than this does not nap.
constexpr std::size_t kMaxNapping = 8;

std::shared_ptr<Waiter> waiter_for(fi_wait_obj kind, WaitSet* set) {
  if (set != nullptr) return set->waiter();
  return kind == FI_WAIT_NONE ? nullptr : std::make_shared<Waiter>();
}

}  // namespace

Waitable::Waitable(Lock& lock, fi_wait_obj kind, WaitSet* set)
    : lock_(lock), kind_(kind), set_(set), waiter_(waiter_for(kind, set)) {
  if (set_ != nullptr) set_->add(*this);
}

Waitable::~Waitable() {
  for (const int descriptor : watched_) waiter_->forget(descriptor);
  if (set_ != nullptr) set_->remove(*this);
}

void Waitable::attach(EndpointProgress& endpoint) {
  // Called twice: when it is bound, and when its NICs are open.
  if (std::find(endpoints_.begin(), endpoints_.end(), &endpoint) == endpoints_.end()) {
    endpoints_.push_back(&endpoint);
  }
  watch(endpoint.wait_descriptor());
  if (expects_sleepers_) endpoint.keep_watched();
}

void Waitable::expect_sleepers() {
  if (std::exchange(expects_sleepers_, true)) return;
  for (EndpointProgress* endpoint : endpoints_) endpoint->keep_watched();
}

void Waitable::detach(EndpointProgress& endpoint) {
  std::erase(endpoints_, &endpoint);
  forget(endpoint.wait_descriptor());
}

void Waitable::watch(int descriptor) {
  if (waiter_ == nullptr || descriptor < 0) return;
  if (std::find(watched_.begin(), watched_.end(), descriptor) != watched_.end()) return;
  watched_.push_back(descriptor);
  waiter_->watch(descriptor);
}

void Waitable::forget(int descriptor) {
  if (std::erase(watched_, descriptor) != 0) waiter_->forget(descriptor);
}

void Waitable::progress() {
  for (EndpointProgress* endpoint : endpoints_) endpoint->progress();
}

void Waitable::progress_again() {
  for (EndpointProgress* endpoint : endpoints_) endpoint->progress_again();
}

bool Waitable::prepare_wait() {
  if (can_wait()) expect_sleepers();
  bool asleep = true;
  for (EndpointProgress* endpoint : endpoints_) asleep = endpoint->prepare_wait() && asleep;
  return asleep && !has_news();
}

void Waitable::nap(std::chrono::milliseconds limit) {
  std::array<pollfd, kMaxNapping> watched;
  std::size_t count = 0;
  {
    const Locked locked(lock_);
    if (endpoints_.size() > watched.size() || !prepare_wait()) return;
    for (EndpointProgress* endpoint : endpoints_) {
      watched[count++] = {.fd = endpoint->wait_descriptor(), .events = POLLIN, .revents = 0};
    }
  }
  poll(watched.data(), count, static_cast<int>(limit.count()));
}

int Waitable::nap_ms(std::chrono::steady_clock::time_point end, int timeout_ms) {
  if (timeout_ms < 0) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

int Waitable::control(int command, void* argument) const {
  if (command == FI_GETWAIT) {
    if (waiter_ == nullptr || argument == nullptr) return -FI_ENODATA;
    *static_cast<int*>(argument) = waiter_->descriptor();
    return 0;
  }
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = kind_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : kind_;
    return 0;
  }
  return -FI_ENOSYS;
}

}  // namespace pullman::ofi
