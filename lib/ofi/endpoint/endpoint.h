// An endpoint (fi_endpoint(3)): owns the components that do its work, each in a file of its own in
// this folder, and opens, enables and closes them together. Takes the domain's lock in the
// application's calls. No component knows the endpoint; each knows those above it in this list.
//
//   Activity, Lanes, Transport          whether the application polls; its contexts; the NICs
//   Connections                         peers by their fi_addr_t
//   OutstandingOperations               operations until they complete, and their completions
//   Transmitter, RmaInitiator,          start an operation each
//   AtomicInitiator, ReceivePoster
//   MultiReceiver, SharedReceiver       receives that wait for more than a message
//   RemoteAccess                        what peers do to memory
//   EndpointProgress                    one turn of all that
//   Peek, Receiver                      receives as the application posts them
//   Issuer, DeferredIssuer              every call: now, or when a counter reaches a threshold
//   EndpointBinding                     the queues, counters and shared contexts of all that
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <cstdint>

#include "ofi/domain.h"
#include "ofi/endpoint/activity.h"
#include "ofi/endpoint/atomic_initiator.h"
#include "ofi/endpoint/binding.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/deferred_issuer.h"
#include "ofi/endpoint/handle.h"
#include "ofi/endpoint/issuer.h"
#include "ofi/endpoint/lanes.h"
#include "ofi/endpoint/multi_receiver.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/peek.h"
#include "ofi/endpoint/progress.h"
#include "ofi/endpoint/receive_poster.h"
#include "ofi/endpoint/receiver.h"
#include "ofi/endpoint/remote_access.h"
#include "ofi/endpoint/rma_initiator.h"
#include "ofi/endpoint/shared_receiver.h"
#include "ofi/endpoint/transmitter.h"
#include "ofi/endpoint/transport.h"

namespace pullman::ofi {

class Endpoint {
 public:
  static int open(fid_domain* domain, fi_info* info, fid_ep** out, void* context);
  static int open_scalable(fid_domain* domain, fi_info* info, fid_ep** out, void* context);

  // `handle` is the endpoint's own, a context's, or an alias's.
  int bind(EndpointHandle& handle, fid& other, std::uint64_t flags);
  int enable(EndpointHandle& handle);
  int close(EndpointHandle& handle);
  // The contexts of a scalable endpoint.
  int open_transmit(int index, fi_tx_attr* attributes, fid_ep** out, void* context);
  int open_receive(int index, fi_rx_attr* attributes, fid_ep** out, void* context);
  int make_alias(const EndpointHandle& original, struct fi_alias& wish);
  int get_name(void* out, std::size_t* length);
  int set_name(const void* address, std::size_t length);
  static int get_option(const Lane& lane, int name, void* out, std::size_t* length);
  int set_option(Lane& lane, int name, const void* value, std::size_t length);

  // Starts the operation now or, with FI_TRIGGER, when its counter reaches the threshold.
  template <typename Call>
  ssize_t call(const Call& call) {
    if (DeferredIssuer::is_triggered(call)) return deferred_.defer(call);
    Locked locked(domain_.lock());
    return issuer_.begin(call);
  }
  ssize_t cancel(Lane& lane, void* context);

  // --- For deferred work.

  static Endpoint& from(fid_ep* handle) { return *EndpointHandle::of(handle).endpoint; }

  Domain& domain() { return domain_; }
  DeferredIssuer& deferred() { return deferred_; }
  EndpointBinding& binding() { return binding_; }

 private:
  enum class Form { kPlain, kScalable };

  Endpoint(Domain& domain, const fi_info& info, Form form, void* context);
  ~Endpoint();
  static int open(Form form, fid_domain* domain, fi_info* info, fid_ep** out, void* context);
  void open_transport();
  int close_endpoint();
  int close_context(ScalableContext& context);
  int close_alias(EndpointHandle& alias);
  void withdraw(Lane& lane);

  Domain& domain_;
  Activity activity_;
  Lanes lanes_;
  EndpointHandle handle_;
  Transport transport_;
  Connections connections_{transport_, activity_};
  OutstandingOperations operations_{connections_};
  ReceivePoster poster_;
  MultiReceiver multi_receiver_{lanes_, poster_, operations_};
  RemoteAccess remote_access_;
  EndpointProgress progress_;
  Peek peek_{transport_, connections_, operations_, poster_, progress_};
  Receiver receiver_{transport_, operations_, poster_, multi_receiver_, peek_};
  Transmitter transmitter_{transport_, connections_, operations_};
  RmaInitiator rma_{transport_, connections_, operations_};
  AtomicInitiator atomics_{transport_, connections_, operations_};
  Issuer issuer_{activity_, transmitter_, receiver_, rma_, atomics_};
  DeferredIssuer deferred_;
  SharedReceiver shared_receiver_{lanes_.own(), transport_, connections_,
                                  operations_,  poster_,    activity_};
  EndpointBinding binding_;
};

template <typename Call>
ssize_t EndpointHandle::call(Call call) const {
  call.lane = lane;
  return endpoint->call(call);
}

}  // namespace pullman::ofi
