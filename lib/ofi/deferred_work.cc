#include "ofi/deferred_work.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include "ofi/call_forms.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/triggers.h"

namespace pullman::ofi {
namespace {

// Reading `counter` must also make progress on the endpoints that bring `trigger` to its threshold.
void attach_endpoints_of(const Counter& trigger, Counter& counter) {
  for (EndpointBinding* endpoint : trigger.endpoints()) endpoint->attach(counter);
}

// Whether the counter belongs to that domain.
bool belongs(fid_cntr* counter, const Domain& domain) {
  return counter != nullptr && &Counter::from(counter).domain() == &domain;
}

int queue_change(Domain& domain, const fi_deferred_work& work) {
  const fi_op_cntr& change = *work.op.cntr;
  if (!belongs(change.cntr, domain) || work.completion_cntr != nullptr) return -FI_EINVAL;
  Counter& counter = Counter::from(change.cntr);
  Counter& trigger = Counter::from(work.triggering_cntr);
  const auto how = work.op_type == FI_OP_CNTR_ADD ? Counter::How::kAdd : Counter::How::kSet;
  attach_endpoints_of(trigger, counter);
  return domain.triggers().add(trigger, work.threshold, Triggers::Counted::kAll,
                               {.what = CounterChange{&counter, change.value, how}, .work = &work});
}

// Checks the call before copying anything of it.
template <typename Call>
int queue_call(Domain& domain, const fi_deferred_work& work, fid_ep* handle, Call call) {
  if (handle == nullptr) return -FI_EINVAL;
  if (handle->fid.fclass == FI_CLASS_SRX_CTX) return -FI_ENOSYS;
  if (&Endpoint::from(handle).domain() != &domain) return -FI_EINVAL;
  call.lane = EndpointHandle::of(handle).lane;
  if (work.completion_cntr != nullptr && !belongs(work.completion_cntr, domain)) return -FI_EINVAL;
  Endpoint& endpoint = Endpoint::from(handle);
  if (const ssize_t wrong = DeferredIssuer::check_work(call); wrong != 0)
    return static_cast<int>(wrong);
  Counter* const completion =
      work.completion_cntr != nullptr ? &Counter::from(work.completion_cntr) : nullptr;
  Counter& trigger = Counter::from(work.triggering_cntr);
  if (completion != nullptr) {
    endpoint.binding().attach(*completion);
    attach_endpoints_of(trigger, *completion);
  }
  return domain.triggers().add(
      trigger, work.threshold, Triggers::Counted::kAll,
      {.what = DeferredOperation{&endpoint.deferred(), DeferredCall(OwnedCall<Call>(call))},
       .work = &work,
       .completion = completion});
}

template <typename Operation>
int queue_send(Domain& domain, const fi_deferred_work& work, const Operation& operation) {
  return queue_call(domain, work, operation.ep, send_call(operation.msg, operation.flags));
}

template <typename Operation>
int queue_receive(Domain& domain, const fi_deferred_work& work, const Operation& operation) {
  return queue_call(domain, work, operation.ep, receive_call(operation.msg, operation.flags));
}

int queue_access(Domain& domain, const fi_deferred_work& work, Way way) {
  const fi_op_rma& operation = *work.op.rma;
  if (!has_one_target(operation.msg)) return -FI_EINVAL;
  return queue_call(domain, work, operation.ep, memory_call(way, operation.msg, operation.flags));
}

template <typename Operation>
int queue_atomic(Domain& domain, const fi_deferred_work& work, const Operation& operation,
                 const AtomicCall& kind) {
  if (!has_one_target(operation.msg)) return -FI_EINVAL;
  return queue_call(domain, work, operation.ep, atomic_call(operation.msg, operation.flags, kind));
}

std::span<const fi_ioc> results_of(const fi_msg_fetch& fetch) {
  return {fetch.msg_iov, fetch.iov_count};
}

int queue_operation(Domain& domain, const fi_deferred_work& work) {
  switch (work.op_type) {
    case FI_OP_RECV:
      return queue_receive(domain, work, *work.op.msg);
    case FI_OP_SEND:
      return queue_send(domain, work, *work.op.msg);
    case FI_OP_TRECV:
      return queue_receive(domain, work, *work.op.tagged);
    case FI_OP_TSEND:
      return queue_send(domain, work, *work.op.tagged);
    case FI_OP_READ:
      return queue_access(domain, work, Way::kRead);
    case FI_OP_WRITE:
      return queue_access(domain, work, Way::kWrite);
    case FI_OP_ATOMIC:
      return queue_atomic(domain, work, *work.op.atomic, {.kind = AtomicKind::kWrite});
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& atomic = *work.op.fetch_atomic;
      return queue_atomic(domain, work, atomic,
                          {.kind = AtomicKind::kFetch, .results = results_of(atomic.fetch)});
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& atomic = *work.op.compare_atomic;
      return queue_atomic(domain, work, atomic,
                          {.kind = AtomicKind::kCompare,
                           .compares = {atomic.compare.msg_iov, atomic.compare.iov_count},
                           .results = results_of(atomic.fetch)});
    }
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return queue_change(domain, work);
  }
  return -FI_ENOSYS;
}

int queue(Domain& domain, const fi_deferred_work* work) {
  // All members of the union are pointers.
  if (work == nullptr || work->op.msg == nullptr || !belongs(work->triggering_cntr, domain)) {
    return -FI_EINVAL;
  }
  const int result = queue_operation(domain, *work);
  if (result == 0) domain.triggers().run();
  return result;
}

int cancel(Domain& domain, const fi_deferred_work* work) {
  if (work == nullptr) return -FI_EINVAL;
  return domain.triggers().cancel(*work) ? 0 : -FI_ENOENT;
}

int flush(Domain& domain, fid_cntr* counter) {
  if (counter != nullptr && !belongs(counter, domain)) return -FI_EINVAL;
  domain.triggers().flush(counter != nullptr ? &Counter::from(counter) : nullptr);
  return 0;
}

}  // namespace

int control_work(Domain& domain, int command, void* argument) {
  Locked locked(domain.lock());
  switch (command) {
    case FI_QUEUE_WORK:
      return queue(domain, static_cast<fi_deferred_work*>(argument));
    case FI_CANCEL_WORK:
      return cancel(domain, static_cast<fi_deferred_work*>(argument));
    case FI_FLUSH_WORK:
      return flush(domain, static_cast<fid_cntr*>(argument));
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace pullman::ofi
