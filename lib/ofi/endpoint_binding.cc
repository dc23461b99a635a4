// Endpoint: what is bound to it, or to a context of it.
#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"
#include "ofi/shared_receive.h"
#include "ofi/shared_transmit.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kSendKinds = FI_SEND | FI_READ | FI_WRITE;
constexpr std::uint64_t kReceiveKinds = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;

// What may complete there.
std::uint64_t kinds_of(const EndpointHandle& handle) {
  switch (handle.fid.fclass) {
    case FI_CLASS_EP:
      return kSendKinds | kReceiveKinds;
    case FI_CLASS_TX_CTX:
      return kSendKinds;
    case FI_CLASS_RX_CTX:
      return kReceiveKinds;
    default:
      return 0;
  }
}

}  // namespace

int Endpoint::bind(EndpointHandle& handle, struct fid& other, std::uint64_t flags) {
  return guarded([&] {
    Locked locked(domain_.lock());
    return bind_locked(handle, other, flags);
  });
}

int Endpoint::bind_locked(EndpointHandle& handle, struct fid& other, std::uint64_t flags) {
  Lane& lane = *handle.lane;
  if (lane.sends || lane.receives) return -FI_EOPBADSTATE;
  const Side* const side = side_of(handle);
  if (side != nullptr && side->closing) return -FI_EOPBADSTATE;
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
      return bind_transmit(object_of<SharedTransmitContext, fid_stx>(&other));
    case FI_CLASS_SRX_CTX:
      return bind_shared_receive(object_of<SharedReceiveContext, fid_ep>(&other));
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::bind_vector(AddressVector& vector) {
  if (&vector.domain() != &domain_) return -FI_EDOMAIN;
  if (vector_ != nullptr) return -FI_EINVAL;
  vector_ = &vector;
  peers_.name_contexts(vector.context_bits());
  vector_->attach(*this);
  if (context_) vector_->introduce(*this);  // somebody has asked for its name
  return 0;
}

int Endpoint::bind_queue(Lane& lane, CompletionQueue& queue, std::uint64_t flags) {
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
  queue.attach(*this);
  return 0;
}

// What peers do to memory here is counted once, wherever that is bound.
int Endpoint::bind_counter(Lane& lane, Counter& counter, std::uint64_t flags) {
  if (&counter.domain() != &domain_) return -FI_EDOMAIN;
  const std::uint64_t remote = flags & (FI_REMOTE_READ | FI_REMOTE_WRITE);
  const bool told = immediate_counter_ != nullptr && (flags & FI_REMOTE_WRITE) != 0;
  if (&lane != &own_ && (told || remote_access_counters_.counts_any(remote))) return -FI_EINVAL;
  if (remote != 0) lane.remote_counters.push_back(&counter);
  CompletionBindings& bindings = lane.bindings;
  if ((flags & FI_SEND) != 0) bindings.send_counter = &counter;
  if ((flags & FI_RECV) != 0) bindings.receive_counter = &counter;
  if ((flags & FI_READ) != 0) bindings.read_counter = &counter;
  if ((flags & FI_WRITE) != 0) bindings.write_counter = &counter;
  if ((caps_ & FI_RMA_EVENT) != 0) {
    remote_access_counters_.bind(counter, flags);
  } else if ((flags & FI_REMOTE_WRITE) != 0) {
    immediate_counter_ = &counter;
  }
  feed(counter);
  return 0;
}

int Endpoint::bind_transmit(SharedTransmitContext& shared) {
  if (!shares_transmit_ || transmit_ != nullptr || &shared.domain() != &domain_) return -FI_EINVAL;
  transmit_ = &shared;
  shared.hold();
  return 0;
}

int Endpoint::bind_shared_receive(SharedReceiveContext& shared) {
  if (!shares_receive_ || shared_receive_ != nullptr || &shared.domain() != &domain_)
    return -FI_EINVAL;
  shared.add(*this);
  shared_receive_ = &shared;
  return 0;
}

// What it cannot do without is bound.
bool Endpoint::is_fully_bound() const {
  return shares_transmit_ == (transmit_ != nullptr) &&
         shares_receive_ == (shared_receive_ != nullptr) &&
         (shared_receive_ == nullptr || shared_receive_->has_one_address_vector());
}

void Endpoint::feed(Counter& counter) {
  if (std::find(counters_.begin(), counters_.end(), &counter) != counters_.end()) return;
  counters_.push_back(&counter);
  counter.attach(*this);
}

void Endpoint::stop_feeding(Counter& counter) {
  if (counts_into(counter)) return;
  if (std::erase(counters_, &counter) != 0) counter.detach(*this);
}

bool Endpoint::counts_into(const Counter& counter) {
  bool found = remote_access_counters_.counts(counter) || immediate_counter_ == &counter;
  for_each_lane([&](const Lane& lane) {
    const CompletionBindings& own = lane.bindings;
    for (const Counter* one :
         {own.send_counter, own.receive_counter, own.read_counter, own.write_counter}) {
      found = found || one == &counter;
    }
  });
  return found;
}

// Whatever its packets bring news to, but for counters.
std::vector<CompletionQueue*> Endpoint::queues() {
  std::vector<CompletionQueue*> all;
  for_each_lane([&](const Lane& lane) {
    for (CompletionQueue* one : {lane.bindings.send_queue, lane.bindings.receive_queue}) {
      if (one != nullptr) all.push_back(one);
    }
  });
  return all;
}

}  // namespace pullman::ofi
