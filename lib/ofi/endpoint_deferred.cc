// Endpoint: operations that begin later (fi_trigger(3)). What can be refused is refused when it is
// asked for; later an error entry says so.
#include <rdma/fi_errno.h>

#include <utility>

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
constexpr std::uint64_t kPeekFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

template <typename Call>
bool is_list(const Call& call) {
  return call.count <= kMaxSegments && (call.count == 0 || call.segments != nullptr);
}

template <typename Call>
bool is_short(const Call& call) {
  std::size_t room = kInjectBytes;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (call.segments[i].iov_len > room) return false;
    room -= call.segments[i].iov_len;
  }
  return true;
}

}  // namespace

ssize_t Endpoint::check(const SendCall& call) {
  if (!is_list(call)) return -FI_EINVAL;
  return (call.flags & FI_INJECT) == 0 || is_short(call) ? 0 : -FI_EINVAL;
}
ssize_t Endpoint::check(const ReceiveCall& call) {
  if ((call.flags & kPeekFlags) != 0) return -FI_ENOSYS;
  return is_list(call) ? 0 : -FI_EINVAL;
}
ssize_t Endpoint::check(const MemoryCall& call) {
  if (!is_list(call)) return -FI_EINVAL;
  return !call.writes || (call.flags & FI_INJECT) == 0 || is_short(call) ? 0 : -FI_EINVAL;
}
ssize_t Endpoint::check(const AtomicCall& call) {
  const auto kind = find_atomic(call.kind, call.type, call.op);
  if (!kind) return -FI_EOPNOTSUPP;
  return is_complete(call, *kind) ? 0 : -FI_EINVAL;
}

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
    if (!is_enabled(call)) return -FI_EOPBADSTATE;
    note_call();
    Call later = call;
    later.flags &= ~FI_TRIGGER;
    const int result = triggers_.add(
        Counter::from(counter), when->trigger.threshold.threshold, Triggers::Counted::kSuccesses,
        {.what = DeferredOperation{this, DeferredCall(OwnedCall<Call>(later))}});
    if (result == 0) triggers_.run();
    return result;
  });
}
template ssize_t Endpoint::defer(const SendCall& call);
template ssize_t Endpoint::defer(const ReceiveCall& call);
template ssize_t Endpoint::defer(const MemoryCall& call);
template ssize_t Endpoint::defer(const AtomicCall& call);

template <typename Call>
ssize_t Endpoint::check_work(const Call& call) const {
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  if constexpr (std::is_same_v<Call, ReceiveCall>) {
    // Its messages are operations of their own.
    if ((call.flags & FI_MULTI_RECV) != 0) return -FI_ENOSYS;
  }
  const ssize_t wrong = check(call);
  return wrong == -FI_EOPNOTSUPP ? -FI_ENOSYS : wrong;
}
template ssize_t Endpoint::check_work(const SendCall& call) const;
template ssize_t Endpoint::check_work(const ReceiveCall& call) const;
template ssize_t Endpoint::check_work(const MemoryCall& call) const;
template ssize_t Endpoint::check_work(const AtomicCall& call) const;

// Deferred work is counted where it says, and completes in the queues if it says so; failures of it
// are counted only.
CompletionBindings Endpoint::bindings_for(const Deferred& deferred) {
  const CompletionBindings& usual = lane_of(deferred)->bindings;
  if (deferred.work == nullptr) return usual;
  const auto flags = std::visit([](const auto& owned) { return owned.call().flags; },
                                std::get<DeferredOperation>(deferred.what).call);
  CompletionBindings own;
  if ((flags & FI_COMPLETION) != 0) {
    own.send_queue = usual.send_queue;
    own.receive_queue = usual.receive_queue;
  }
  own.send_counter = own.receive_counter = own.read_counter = own.write_counter =
      deferred.completion;
  return own;
}

// An operation takes its bindings when it begins: so long they are those of its lane.
class Endpoint::ScopedBindings {
 public:
  explicit ScopedBindings(const Deferred& deferred)
      : lane_(*lane_of(deferred)), usual_(std::exchange(lane_.bindings, bindings_for(deferred))) {}
  ~ScopedBindings() { lane_.bindings = usual_; }
  ScopedBindings(const ScopedBindings&) = delete;
  ScopedBindings& operator=(const ScopedBindings&) = delete;

 private:
  Lane& lane_;
  const CompletionBindings usual_;
};

// A receive behind a multi-receive buffer would complete as those of the endpoint do.
bool Endpoint::is_in_line(const Deferred& deferred) const {
  const auto* receive =
      std::get_if<OwnedCall<ReceiveCall>>(&std::get<DeferredOperation>(deferred.what).call);
  return deferred.work != nullptr && receive != nullptr &&
         receive->call().space == Space::kMessages && receive->call().lane->shared.active();
}

bool Endpoint::begin(const Deferred& deferred) {
  if (full_ || is_in_line(deferred)) return false;
  const ssize_t result = guarded([&] {
    const ScopedBindings own(deferred);
    return std::visit([&](const auto& owned) { return begin(owned.call()); },
                      std::get<DeferredOperation>(deferred.what).call);
  });
  full_ = result == -FI_EAGAIN;
  if (result < 0 && !full_) drop(deferred, status_of(static_cast<int>(-result)));
  return !full_;
}

void Endpoint::drop(const Deferred& deferred, Status why) {
  guarded([&] {
    const ScopedBindings own(deferred);
    std::visit([&](const auto& owned) { fail(owned.call(), why); },
               std::get<DeferredOperation>(deferred.what).call);
    return 0;
  });
}

bool Endpoint::counts_for(const Counter& counter) {
  return operations_.find([&](const Operation& one) { return one.counter == &counter; }) != nullptr;
}

}  // namespace pullman::ofi
