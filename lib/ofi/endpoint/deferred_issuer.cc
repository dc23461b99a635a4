#include "ofi/endpoint/deferred_issuer.h"

#include <rdma/fi_errno.h>

#include <type_traits>
#include <utility>

#include "ofi/atomics.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint/failed_call.h"
#include "ofi/errors.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

template <typename Call>
bool has_valid_segments(const Call& call) {
  return call.count <= kMaxSegments && (call.count == 0 || call.segments != nullptr);
}

template <typename Call>
bool may_inject(const Call& call) {
  std::size_t room = kInjectBytes;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (call.segments[i].iov_len > room) return false;
    room -= call.segments[i].iov_len;
  }
  return true;
}

ssize_t check_deferred(const SendCall& call) {
  if (!has_valid_segments(call)) return -FI_EINVAL;
  return (call.flags & FI_INJECT) == 0 || may_inject(call) ? 0 : -FI_EINVAL;
}
ssize_t check_deferred(const ReceiveCall& call) {
  if ((call.flags & Peek::kFlags) != 0) return -FI_ENOSYS;  // a peek is answered at once
  return has_valid_segments(call) ? 0 : -FI_EINVAL;
}
ssize_t check_deferred(const MemoryCall& call) {
  if (!has_valid_segments(call)) return -FI_EINVAL;
  return !call.writes || (call.flags & FI_INJECT) == 0 || may_inject(call) ? 0 : -FI_EINVAL;
}
ssize_t check_deferred(const AtomicCall& call) {
  const auto kind = find_atomic(call.kind, call.type, call.op);
  if (!kind) return -FI_EOPNOTSUPP;
  return is_complete(call, *kind) ? 0 : -FI_EINVAL;
}

const DeferredCall& call_of(const Deferred& deferred) {
  return std::get<DeferredOperation>(deferred.what).call;
}

// Deferred work is counted by its own counter, and completes in the queues only if it asks for
// that; its failures are only counted.
CompletionBindings bindings_for(const Deferred& deferred) {
  const CompletionBindings& usual = lane_of(deferred)->bindings;
  if (deferred.work == nullptr) return usual;
  const auto flags =
      std::visit([](const auto& owned) { return owned.call().flags; }, call_of(deferred));
  CompletionBindings own;
  if ((flags & FI_COMPLETION) != 0) {
    own.send_queue = usual.send_queue;
    own.receive_queue = usual.receive_queue;
  }
  own.send_counter = own.receive_counter = own.read_counter = own.write_counter =
      deferred.completion;
  return own;
}

// An operation takes the bindings of its lane when it begins: this replaces them by those of the
// deferred operation meanwhile.
class ScopedBindings {
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

// A receive queued behind a multi-receive buffer would complete as the endpoint's receives do, not
// as deferred work.
bool must_wait_for_buffer(const Deferred& deferred) {
  const auto* receive = std::get_if<OwnedCall<ReceiveCall>>(&call_of(deferred));
  return deferred.work != nullptr && receive != nullptr &&
         receive->call().space == Space::kMessages && receive->call().lane->multi_receive.active();
}

}  // namespace

DeferredIssuer::DeferredIssuer(Domain& domain, Issuer& issuer, TriggeredCalls triggered)
    : domain_(domain), issuer_(issuer), offers_triggers_(triggered == TriggeredCalls::kOffered) {}

template <typename Call>
ssize_t DeferredIssuer::defer(const Call& call) {
  if (!offers_triggers_) return -FI_EBADFLAGS;
  const auto* when = static_cast<const fi_triggered_context*>(call.context);
  if (when == nullptr) return -FI_EINVAL;
  if (when->event_type != FI_TRIGGER_THRESHOLD) return -FI_ENOSYS;
  fid_cntr* const counter = when->trigger.threshold.cntr;
  if (counter == nullptr || &Counter::from(counter).domain() != &domain_) return -FI_EINVAL;
  if (const ssize_t wrong = check_deferred(call); wrong != 0) return wrong;
  return guarded([&]() -> ssize_t {
    Locked locked(domain_.lock());
    if (!is_enabled(call)) return -FI_EOPBADSTATE;
    issuer_.note_call();
    Call later = call;
    later.flags &= ~FI_TRIGGER;
    const int result = domain_.triggers().add(
        Counter::from(counter), when->trigger.threshold.threshold, Triggers::Counted::kSuccesses,
        {.what = DeferredOperation{this, DeferredCall(OwnedCall<Call>(later))}});
    if (result == 0) domain_.triggers().run();
    return result;
  });
}
template ssize_t DeferredIssuer::defer(const SendCall& call);
template ssize_t DeferredIssuer::defer(const ReceiveCall& call);
template ssize_t DeferredIssuer::defer(const MemoryCall& call);
template ssize_t DeferredIssuer::defer(const AtomicCall& call);

template <typename Call>
ssize_t DeferredIssuer::check_work(const Call& call) {
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  if constexpr (std::is_same_v<Call, ReceiveCall>) {
    // Each message of a multi-receive buffer would be an operation of its own.
    if ((call.flags & FI_MULTI_RECV) != 0) return -FI_ENOSYS;
  }
  const ssize_t wrong = check_deferred(call);
  return wrong == -FI_EOPNOTSUPP ? -FI_ENOSYS : wrong;
}
template ssize_t DeferredIssuer::check_work(const SendCall& call);
template ssize_t DeferredIssuer::check_work(const ReceiveCall& call);
template ssize_t DeferredIssuer::check_work(const MemoryCall& call);
template ssize_t DeferredIssuer::check_work(const AtomicCall& call);

bool DeferredIssuer::begin(const Deferred& deferred) {
  if (blocked_ || must_wait_for_buffer(deferred)) return false;
  const ssize_t result = guarded([&] {
    const ScopedBindings own(deferred);
    return std::visit([&](const auto& owned) { return issuer_.begin(owned.call()); },
                      call_of(deferred));
  });
  blocked_ = result == -FI_EAGAIN;
  if (result < 0 && !blocked_) drop(deferred, status_of(static_cast<int>(-result)));
  return !blocked_;
}

void DeferredIssuer::drop(const Deferred& deferred, Status why) {
  guarded([&] {
    const ScopedBindings own(deferred);
    std::visit([&](const auto& owned) { report_failure(owned.call(), why); }, call_of(deferred));
    return 0;
  });
}

}  // namespace pullman::ofi
