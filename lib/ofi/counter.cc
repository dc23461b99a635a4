#include "ofi/counter.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/domain.h"
#include "ofi/endpoint/binding.h"
#include "ofi/guarded.h"
#include "ofi/wait_set.h"
#include "ofi/waitable_calls.h"

namespace pullman::ofi {
namespace {

fi_ops_cntr& counter_operations() {
  using Value = std::uint64_t;
  static fi_ops_cntr table{
      .size = sizeof(fi_ops_cntr),
      .read = [](fid_cntr* counter) { return Counter::from(counter).read(); },
      .readerr = [](fid_cntr* counter) { return Counter::from(counter).read_errors(); },
      .add =
          [](fid_cntr* counter, Value by) {
            return Counter::from(counter).change(Counter::Which::kSuccesses, by,
                                                 Counter::How::kAdd);
          },
      .set =
          [](fid_cntr* counter, Value to) {
            return Counter::from(counter).change(Counter::Which::kSuccesses, to,
                                                 Counter::How::kSet);
          },
      .wait = [](fid_cntr* counter, Value threshold,
                 int timeout) { return Counter::from(counter).wait(threshold, timeout); },
      .adderr =
          [](fid_cntr* counter, Value by) {
            return Counter::from(counter).change(Counter::Which::kErrors, by, Counter::How::kAdd);
          },
      .seterr =
          [](fid_cntr* counter, Value to) {
            return Counter::from(counter).change(Counter::Which::kErrors, to, Counter::How::kSet);
          }};
  return table;
}

}  // namespace

Counter::Counter(Domain& domain, const fi_cntr_attr& attributes, void* context)
    : fid_cntr{},
      Waitable(domain.lock(),
               attributes.wait_obj == FI_WAIT_NONE ? FI_WAIT_NONE : attributes.wait_obj,
               attributes.wait_obj == FI_WAIT_SET ? WaitSet::from(attributes.wait_set) : nullptr),
      domain_(domain) {
  fid = {.fclass = FI_CLASS_CNTR,
         .context = context,
         .ops = &waitable_operations<Counter, fid_cntr>()};
  ops = &counter_operations();
  domain_.hold();
}

Counter::~Counter() {
  domain_.release();
}

void Counter::attach(EndpointBinding& endpoint) {
  // Called twice: when the counter is bound, and when the endpoint's transport opens.
  if (std::find(endpoints_.begin(), endpoints_.end(), &endpoint) == endpoints_.end()) {
    endpoints_.push_back(&endpoint);
  }
  Waitable::attach(endpoint.progress());
}

void Counter::detach(EndpointBinding& endpoint) {
  std::erase(endpoints_, &endpoint);
  Waitable::detach(endpoint.progress());
}

int Counter::close() {
  {
    Locked locked(lock());
    if (held() || is_in_use()) return -FI_EBUSY;
    domain_.regions().remove_counter(*this);
    domain_.triggers().forget(*this);
  }
  delete this;
  return 0;
}

// Whether something counts here or may later. Detaches endpoints that no longer do (after deferred
// work, or when a region was closed).
bool Counter::is_in_use() {
  if (domain_.triggers().refers_to(*this)) return true;
  const std::vector<EndpointBinding*> endpoints = endpoints_;  // detach() changes the member
  for (EndpointBinding* endpoint : endpoints) {
    if (endpoint->has_outstanding(*this)) return true;
  }
  if (!domain_.regions().counts(*this)) {
    for (EndpointBinding* endpoint : endpoints) endpoint->detach(*this);
  }
  return attached();
}

void Counter::notify_triggers() {
  domain_.triggers().note(*this);
}

int Counter::open(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** out, void* context) {
  return guarded([&]() -> int {
    const fi_cntr_attr given = attributes != nullptr ? *attributes : fi_cntr_attr{};
    if (given.events != FI_CNTR_EVENTS_COMP) return -FI_ENOSYS;
    if (given.wait_obj == FI_WAIT_MUTEX_COND || given.wait_obj == FI_WAIT_POLLFD) {
      return -FI_ENOSYS;
    }
    if (given.wait_obj == FI_WAIT_SET && given.wait_set == nullptr) return -FI_EINVAL;
    *out = new Counter(Domain::from(domain), given, context);
    return 0;
  });
}

std::uint64_t Counter::read() {
  FairLocked locked(lock());
  progress();
  clear_wake();
  return read_value_ = value_;
}

std::uint64_t Counter::read_errors() {
  FairLocked locked(lock());
  progress();
  return read_errors_ = errors_;
}

int Counter::wait(std::uint64_t threshold, int timeout_ms) {
  std::uint64_t errors_before = 0;
  {
    Locked locked(lock());
    errors_before = errors_;
  }
  bool failed = false;
  const bool reached = wait_until(timeout_ms, [&] {
    clear_wake();
    read_value_ = value_;
    read_errors_ = errors_;  // else they stay news, and no thread sleeps
    failed = errors_ != errors_before;
    return value_ >= threshold || failed;
  });
  if (!reached) return -FI_ETIMEDOUT;
  return failed ? -FI_EAVAIL : 0;
}

int Counter::change(Which which, std::uint64_t value, How how) {
  return guarded([&] {
    Locked locked(lock());
    alter(which, value, how);
    domain_.triggers().run();
    return 0;
  });
}

}  // namespace pullman::ofi
