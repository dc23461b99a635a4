// Endpoint: operations that begin later (fi_trigger(3)).
#include <rdma/fi_errno.h>

#include "ofi/atomics.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

// Looking at messages answers at once, so it cannot be put off.
constexpr std::uint64_t kNow = FI_PEEK | FI_CLAIM | FI_DISCARD;

template <typename Call>
bool is_short(const Call& call) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) length += call.pieces[i].iov_len;
  return (call.flags & FI_INJECT) == 0 || length <= kInjectBytes;
}

ssize_t check(const SendCall& call) {
  return call.count <= kMostPieces && is_short(call) ? 0 : -FI_EINVAL;
}
ssize_t check(const ReceiveCall& call) {
  if ((call.flags & kNow) != 0) return -FI_ENOSYS;
  return call.count <= kMostPieces ? 0 : -FI_EINVAL;
}
ssize_t check(const MemoryCall& call) {
  return call.count <= kMostPieces && is_short(call) ? 0 : -FI_EINVAL;
}
ssize_t check(const AtomicCall& call) {
  if (!find_atomic(call.kind, call.type, call.op)) return -FI_EOPNOTSUPP;
  const auto fits = [](std::span<const fi_ioc> pieces) { return pieces.size() <= kMostPieces; };
  return fits(call.operands) && fits(call.compares) && fits(call.results) ? 0 : -FI_EINVAL;
}

}  // namespace

// A triggered operation: its context says when.
template <typename Call>
ssize_t Endpoint::defer(const Call& call) {
  if ((caps_ & FI_TRIGGER) == 0) return -FI_EBADFLAGS;
  const auto* when = static_cast<const fi_triggered_context*>(call.context);
  if (when == nullptr) return -FI_EINVAL;
  if (when->event_type != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  fid_cntr* const counter = when->trigger.threshold.cntr;
  if (counter == nullptr || &Counter::from(counter).domain() != &domain_) return -FI_EINVAL;
  if (const ssize_t wrong = check(call); wrong != 0) return wrong;
  return guarded([&]() -> ssize_t {
    Locked locked(domain_.lock());
    if (!enabled_) return -FI_EOPBADSTATE;
    Call later = call;
    later.flags &= ~FI_TRIGGER;
    const int result = triggers_.add(Counter::from(counter), when->trigger.threshold.threshold,
                                     Triggers::Counted::kSuccesses,
                                     {.what = DeferredOperation{this, Kept<Call>(later)}});
    if (result == 0) triggers_.run();
    return result;
  });
}
template ssize_t Endpoint::defer(const SendCall& call);
template ssize_t Endpoint::defer(const ReceiveCall& call);
template ssize_t Endpoint::defer(const MemoryCall& call);
template ssize_t Endpoint::defer(const AtomicCall& call);

ssize_t Endpoint::check_deferred(const DeferredCall& call) const {
  if (!enabled_) return -FI_EOPBADSTATE;
  const auto* receive = std::get_if<Kept<ReceiveCall>>(&call);
  // Its messages are operations of their own.
  if (receive != nullptr && (receive->call().flags & FI_MULTI_RECV) != 0) return -FI_ENOSYS;
  return std::visit([](const auto& kept) { return check(kept.call()); }, call);
}

// Deferred work is counted where it says, and completes in the queues if it says so; failures of it
// are counted only.
Outlets Endpoint::outlets_for(const Deferred& deferred) const {
  if (deferred.work == nullptr) return outlets_;
  const auto flags = std::visit([](const auto& kept) { return kept.call().flags; },
                                std::get<DeferredOperation>(deferred.what).call);
  Outlets own;
  if ((flags & FI_COMPLETION) != 0) {
    own.send_queue = outlets_.send_queue;
    own.receive_queue = outlets_.receive_queue;
  }
  own.send_counter = own.receive_counter = own.read_counter = own.write_counter =
      deferred.completion;
  return own;
}

// An operation takes its outlets when it begins.
bool Endpoint::begin(const Deferred& deferred) {
  const Outlets usual = std::exchange(outlets_, outlets_for(deferred));
  const ssize_t result = std::visit([&](const auto& kept) { return begin(kept.call()); },
                                    std::get<DeferredOperation>(deferred.what).call);
  outlets_ = usual;
  if (result == -FI_EAGAIN) return false;
  if (result < 0) drop(deferred, status_of(static_cast<int>(-result)));
  return true;
}

void Endpoint::drop(const Deferred& deferred, Status why) {
  const Outlets usual = std::exchange(outlets_, outlets_for(deferred));
  std::visit([&](const auto& kept) { fail(kept.call(), why); },
             std::get<DeferredOperation>(deferred.what).call);
  outlets_ = usual;
}

bool Endpoint::counts_for(const Counter& counter) {
  return operations_.find([&](const Operation& one) { return one.counter == &counter; }) != nullptr;
}

}  // namespace pullman::ofi
