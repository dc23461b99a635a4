// The objects bound to an endpoint and its contexts (fi_ep_bind(3)): an address vector, completion
// queues, counters and shared contexts. From then on queues and counters make progress through the
// endpoint. Under the domain's lock.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <vector>

#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/handle.h"
#include "ofi/endpoint/lanes.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/progress.h"
#include "ofi/endpoint/remote_access.h"
#include "ofi/endpoint/shared_receiver.h"

namespace pullman::ofi {

class Domain;
class SharedReceiveContext;
class SharedTransmitContext;

class EndpointBinding {
 public:
  // Which shared contexts the fi_info of the endpoint asks for (FI_SHARED_CONTEXT).
  struct Shares {
    bool transmit = false;
    bool receive = false;
  };

  EndpointBinding(Domain& domain, Lanes& lanes, Connections& connections,
                  const OutstandingOperations& operations, RemoteAccess& remote_access,
                  EndpointProgress& progress, SharedReceiver& shared_receiver, Shares shares);

  // Returns 0 or an error number.
  int bind(EndpointHandle& handle, fid& other, std::uint64_t flags);
  // Whether the shared contexts that the endpoint asked for are bound.
  bool is_complete() const;
  bool shares_receive() const { return shares_.receive; }
  SharedReceiveContext* shared_receive() const { return shared_receive_; }

  // The transport has opened: gives its descriptor to everything that is bound.
  void attach_all();
  // The endpoint closes.
  void detach_all();
  // A context closes: releases its queues, unless other contexts use them. Its counters stay
  // attached until they are closed, because deferred work may use them.
  void release(Lane& lane);

  // --- For counters, and operations that they count.

  EndpointProgress& progress() { return progress_; }
  // The endpoint's packets may change that counter, though it is not bound.
  void attach(Counter& counter);
  // They do not any more, unless it is bound.
  void detach(Counter& counter);
  // Whether the counter will count an outstanding operation.
  bool has_outstanding(const Counter& counter) const { return operations_.any_counted_by(counter); }

 private:
  int bind_queue(Lane& lane, CompletionQueue& queue, std::uint64_t flags);
  int bind_counter(Lane& lane, Counter& counter, std::uint64_t flags);
  int bind_vector(AddressVector& vector);
  int bind_shared_transmit(SharedTransmitContext& shared);
  int bind_shared_receive(SharedReceiveContext& shared);
  bool is_bound(const Counter& counter);
  std::vector<CompletionQueue*> queues();

  Domain& domain_;
  Lanes& lanes_;
  Connections& connections_;
  const OutstandingOperations& operations_;
  RemoteAccess& remote_access_;
  EndpointProgress& progress_;
  SharedReceiver& shared_receiver_;
  const Shares shares_;
  SharedTransmitContext* shared_transmit_ = nullptr;
  SharedReceiveContext* shared_receive_ = nullptr;
  std::vector<Counter*> counters_;  // every counter that the endpoint's packets may change
};

}  // namespace pullman::ofi
