#include "ofi/deferred_work.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>

#include <optional>

#include "ofi/call_forms.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/triggers.h"

namespace pullman::ofi {
namespace {

template <typename Operation, typename Call>
DeferredOperation operation_of(const Operation& operation, const Call& call) {
  Endpoint* const endpoint =
      operation.ep != nullptr ? &Endpoint::from(operation.ep) : static_cast<Endpoint*>(nullptr);
  return {endpoint, Kept<Call>(call)};
}

template <typename Operation>
DeferredOperation send_of(const Operation& operation) {
  return operation_of(operation, send_call(operation.msg, operation.flags));
}

template <typename Operation>
DeferredOperation receive_of(const Operation& operation) {
  return operation_of(operation, receive_call(operation.msg, operation.flags));
}

DeferredOperation access_of(Way way, const fi_op_rma& operation) {
  return operation_of(operation, memory_call(way, operation.msg, operation.flags));
}

template <typename Operation>
DeferredOperation atomic_of(const Operation& operation, const AtomicCall& kind) {
  return operation_of(operation, atomic_call(operation.msg, operation.flags, kind));
}

std::span<const fi_ioc> results_of(const fi_msg_fetch& fetch) {
  return {fetch.msg_iov, fetch.iov_count};
}

// Nothing: no such operation, or not as libfabric describes it.
std::optional<DeferredOperation> operation_of(const fi_deferred_work& work) {
  switch (work.op_type) {
    case FI_OP_RECV:
      return receive_of(*work.op.msg);
    case FI_OP_SEND:
      return send_of(*work.op.msg);
    case FI_OP_TRECV:
      return receive_of(*work.op.tagged);
    case FI_OP_TSEND:
      return send_of(*work.op.tagged);
    case FI_OP_READ:
    case FI_OP_WRITE:
      if (work.op.rma->msg.rma_iov_count != 1) return std::nullopt;
      return access_of(work.op_type == FI_OP_READ ? Way::kRead : Way::kWrite, *work.op.rma);
    case FI_OP_ATOMIC:
      if (work.op.atomic->msg.rma_iov_count != 1) return std::nullopt;
      return atomic_of(*work.op.atomic, {.kind = AtomicKind::kWrite});
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& atomic = *work.op.fetch_atomic;
      if (atomic.msg.rma_iov_count != 1) return std::nullopt;
      return atomic_of(atomic, {.kind = AtomicKind::kFetch, .results = results_of(atomic.fetch)});
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& atomic = *work.op.compare_atomic;
      if (atomic.msg.rma_iov_count != 1) return std::nullopt;
      return atomic_of(atomic, {.kind = AtomicKind::kCompare,
                                .compares = {atomic.compare.msg_iov, atomic.compare.iov_count},
                                .results = results_of(atomic.fetch)});
    }
    default:
      return std::nullopt;
  }
}

// Whoever reads `told` moves the packets that `teller` waits for, too.
void feed(Counter& told, const Counter& teller) {
  for (Endpoint* endpoint : teller.endpoints()) endpoint->feed(told);
}

// A counter of that domain.
bool belongs(fid_cntr* counter, const Domain& domain) {
  return counter != nullptr && &Counter::from(counter).domain() == &domain;
}

int queue_change(Domain& domain, const fi_deferred_work& work) {
  const fi_op_cntr& change = *work.op.cntr;
  if (!belongs(change.cntr, domain) || work.completion_cntr != nullptr) return -FI_EINVAL;
  Counter& counter = Counter::from(change.cntr);
  Counter& trigger = Counter::from(work.triggering_cntr);
  const bool adds = work.op_type == FI_OP_CNTR_ADD;
  const int result =
      domain.triggers().add(trigger, work.threshold, Triggers::Counted::kAll,
                            {.what = CounterChange{&counter, change.value, adds}, .work = &work});
  if (result == 0) feed(counter, trigger);
  return result;
}

int queue_operation(Domain& domain, const fi_deferred_work& work) {
  auto operation = operation_of(work);
  if (!operation) return work.op_type > FI_OP_CNTR_ADD ? -FI_ENOSYS : -FI_EINVAL;
  Endpoint* const endpoint = operation->endpoint;
  if (endpoint == nullptr || &endpoint->domain() != &domain) return -FI_EINVAL;
  if (const ssize_t wrong = endpoint->check_deferred(operation->call); wrong != 0) {
    return static_cast<int>(wrong);
  }
  if (work.completion_cntr != nullptr && !belongs(work.completion_cntr, domain)) return -FI_EINVAL;
  Counter* const completion =
      work.completion_cntr != nullptr ? &Counter::from(work.completion_cntr) : nullptr;
  Counter& trigger = Counter::from(work.triggering_cntr);
  const int result = domain.triggers().add(
      trigger, work.threshold, Triggers::Counted::kAll,
      {.what = std::move(*operation), .work = &work, .completion = completion});
  if (result != 0 || completion == nullptr) return result;
  endpoint->feed(*completion);
  feed(*completion, trigger);
  return 0;
}

int queue(Domain& domain, const fi_deferred_work* work) {
  // All members of the union are pointers.
  if (work == nullptr || work->op.msg == nullptr || !belongs(work->triggering_cntr, domain)) {
    return -FI_EINVAL;
  }
  const bool changes = work->op_type == FI_OP_CNTR_SET || work->op_type == FI_OP_CNTR_ADD;
  const int result = changes ? queue_change(domain, *work) : queue_operation(domain, *work);
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
