#include "ofi/endpoint/binding.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/fids.h"
#include "ofi/shared_receive.h"
#include "ofi/shared_transmit.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kTransmitKinds = FI_SEND | FI_READ | FI_WRITE;
constexpr std::uint64_t kReceiveKinds = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

// Returns the kinds of operations that may complete in what is bound to such a handle.
std::uint64_t kinds_of(const EndpointHandle& handle) {
  switch (handle.fid.fclass) {
    case FI_CLASS_EP:
      return kTransmitKinds | kReceiveKinds;
    case FI_CLASS_TX_CTX:
      return kTransmitKinds;
    case FI_CLASS_RX_CTX:
      return kReceiveKinds;
    default:
      return 0;
  }
}

}  // namespace

EndpointBinding::EndpointBinding(Domain& domain, Lanes& lanes, Connections& connections,
                                 const OutstandingOperations& operations,
                                 RemoteAccess& remote_access, EndpointProgress& progress,
                                 SharedReceiver& shared_receiver, Shares shares)
    : domain_(domain),
      lanes_(lanes),
      connections_(connections),
      operations_(operations),
      remote_access_(remote_access),
      progress_(progress),
      shared_receiver_(shared_receiver),
      shares_(shares) {}

int EndpointBinding::bind(EndpointHandle& handle, struct fid& other, std::uint64_t flags) {
  Lane& lane = *handle.lane;
  if (lane.sends || lane.receives || lanes_.is_closing(handle)) return -FI_EOPBADSTATE;
  const std::uint64_t kinds = kinds_of(handle);
  const bool is_whole = handle.fid.fclass == FI_CLASS_EP || handle.fid.fclass == FI_CLASS_SEP;
  switch (other.fclass) {
    case FI_CLASS_AV:
      return is_whole ? bind_vector(object_of<AddressVector, fid_av>(&other)) : -FI_EINVAL;
    case FI_CLASS_CQ:
      if ((flags & ~((kinds & (FI_TRANSMIT | FI_RECV)) | FI_SELECTIVE_COMPLETION)) != 0 ||
          (flags & (FI_TRANSMIT | FI_RECV)) == 0) {
        return -FI_EBADFLAGS;
      }
      return bind_queue(lane, object_of<CompletionQueue, fid_cq>(&other), flags);
    case FI_CLASS_CNTR:
      if ((flags & ~kinds) != 0 || kinds == 0) return -FI_EBADFLAGS;
      return bind_counter(lane, object_of<Counter, fid_cntr>(&other), flags);
    case FI_CLASS_EQ:
      return 0;  // an endpoint of this kind has no events of its own
    case FI_CLASS_STX_CTX:
      return bind_shared_transmit(object_of<SharedTransmitContext, fid_stx>(&other));
    case FI_CLASS_SRX_CTX:
      return bind_shared_receive(object_of<SharedReceiveContext, fid_ep>(&other));
    default:
      return -FI_EINVAL;
  }
}

int EndpointBinding::bind_vector(AddressVector& vector) {
  if (&vector.domain() != &domain_) return -FI_EDOMAIN;
  if (connections_.vector() != nullptr) return -FI_EINVAL;
  connections_.bind(vector);
  return 0;
}

int EndpointBinding::bind_queue(Lane& lane, CompletionQueue& queue, std::uint64_t flags) {
  if (&queue.domain() != &domain_) return -FI_EDOMAIN;
  CompletionBindings& bindings = lane.bindings;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (((flags & FI_TRANSMIT) != 0 && bindings.send_queue != nullptr) ||
      ((flags & FI_RECV) != 0 && bindings.receive_queue != nullptr)) {
    return -FI_EINVAL;
  }
  if ((flags & FI_TRANSMIT) != 0) {
    bindings.send_queue = &queue;
    bindings.selective_sends = selective;
  }
  if ((flags & FI_RECV) != 0) {
    bindings.receive_queue = &queue;
    bindings.selective_receives = selective;
  }
  queue.attach(progress_);
  return 0;
}

// Accesses by peers count once for the endpoint, wherever the counter is bound.
int EndpointBinding::bind_counter(Lane& lane, Counter& counter, std::uint64_t flags) {
  if (&counter.domain() != &domain_) return -FI_EDOMAIN;
  const std::uint64_t remote = flags & (FI_REMOTE_READ | FI_REMOTE_WRITE);
  if (&lane != &lanes_.own() && remote_access_.counts_any(remote)) return -FI_EINVAL;
  if (remote != 0) lane.remote_counters.push_back(&counter);
  CompletionBindings& bindings = lane.bindings;
  if ((flags & FI_SEND) != 0) bindings.send_counter = &counter;
  if ((flags & FI_RECV) != 0) bindings.receive_counter = &counter;
  if ((flags & FI_READ) != 0) bindings.read_counter = &counter;
  if ((flags & FI_WRITE) != 0) bindings.write_counter = &counter;
  remote_access_.bind(counter, flags);
  attach(counter);
  return 0;
}

int EndpointBinding::bind_shared_transmit(SharedTransmitContext& shared) {
  if (!shares_.transmit || shared_transmit_ != nullptr) return -FI_EINVAL;
  if (&shared.domain() != &domain_) return -FI_EINVAL;
  shared_transmit_ = &shared;
  shared.hold();
  return 0;
}

int EndpointBinding::bind_shared_receive(SharedReceiveContext& shared) {
  if (!shares_.receive || shared_receive_ != nullptr) return -FI_EINVAL;
  if (&shared.domain() != &domain_) return -FI_EINVAL;
  shared.add(shared_receiver_);
  progress_.bind(shared);
  shared_receive_ = &shared;
  return 0;
}

bool EndpointBinding::is_complete() const {
  return shares_.transmit == (shared_transmit_ != nullptr) &&
         shares_.receive == (shared_receive_ != nullptr) &&
         (shared_receive_ == nullptr || shared_receive_->has_one_address_vector());
}

void EndpointBinding::attach_all() {
  for (CompletionQueue* one : queues()) one->attach(progress_);
  for (Counter* one : counters_) one->attach(*this);
}

void EndpointBinding::detach_all() {
  if (shared_transmit_ != nullptr) shared_transmit_->release();
  for (CompletionQueue* one : queues()) one->detach(progress_);
  for (Counter* one : counters_) one->detach(*this);
}

void EndpointBinding::release(Lane& lane) {
  const std::vector<CompletionQueue*> bound = queues();
  const CompletionBindings released = std::exchange(lane.bindings, CompletionBindings());
  for (CompletionQueue* queue : {released.send_queue, released.receive_queue}) {
    if (queue == nullptr) continue;
    if (std::count(bound.begin(), bound.end(), queue) == 1) queue->detach(progress_);
  }
  for (Counter* counter : lane.remote_counters) remote_access_.unbind(*counter);
  lane.remote_counters.clear();
}

void EndpointBinding::attach(Counter& counter) {
  if (std::find(counters_.begin(), counters_.end(), &counter) != counters_.end()) return;
  counters_.push_back(&counter);
  counter.attach(*this);
}

void EndpointBinding::detach(Counter& counter) {
  if (is_bound(counter)) return;
  if (std::erase(counters_, &counter) != 0) counter.detach(*this);
}

bool EndpointBinding::is_bound(const Counter& counter) {
  bool found = remote_access_.counts(counter);
  lanes_.for_each([&](const Lane& lane) {
    const CompletionBindings& bindings = lane.bindings;
    for (const Counter* one : {bindings.send_counter, bindings.receive_counter,
                               bindings.read_counter, bindings.write_counter}) {
      found = found || one == &counter;
    }
  });
  return found;
}

// Returns the queues of all lanes; one that several lanes use is in it as often.
std::vector<CompletionQueue*> EndpointBinding::queues() {
  std::vector<CompletionQueue*> all;
  lanes_.for_each([&](const Lane& lane) {
    for (CompletionQueue* one : {lane.bindings.send_queue, lane.bindings.receive_queue}) {
      if (one != nullptr) all.push_back(one);
    }
  });
  return all;
}

}  // namespace pullman::ofi
