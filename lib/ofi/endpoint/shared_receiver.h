// The part of an endpoint in a shared receive context (fi_srx_context()): offers it the messages
// that come to this endpoint, and takes those that it has a receive for.
#pragma once

#include <rdma/fabric.h>

#include <optional>

#include "ofi/calls.h"
#include "ofi/endpoint/activity.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/outstanding.h"
#include "ofi/endpoint/receive_poster.h"
#include "ofi/endpoint/transport.h"
#include "pullman/context.h"
#include "pullman/status.h"

namespace pullman::ofi {

class SharedReceiver {
 public:
  // `lane`: the endpoint's own, whose queue and counter report what is received.
  SharedReceiver(Lane& lane, Transport& transport, Connections& connections,
                 OutstandingOperations& operations, ReceivePoster& poster, Activity& activity)
      : lane_(lane),
        transport_(transport),
        connections_(connections),
        operations_(operations),
        poster_(poster),
        activity_(activity) {}

  // A message that no receive has matched; each is offered once.
  std::optional<Probe> next_unexpected(Space space);
  bool matches(const ReceiveCall& call, const Probe& message) const;
  // Receives the earliest message that has come here for the call. False: there is none. `buffer`:
  // where to, if the call is a multi-receive.
  bool receive(const ReceiveCall& call, MultiReceiveBuffer* buffer);
  // A message is on its way into a receive with that context.
  bool is_receiving(const void* context) const;

  // Such a receive will not be started.
  void report_failure(ReceiveCall call, Status why);
  bool reports_receives() const { return lane_.bindings.receive_queue != nullptr; }

  // --- Of the peer that a receive names.

  bool has_source(const ReceiveCall& call) const;
  // kConnecting: the receive names no peer.
  PeerState source_state(const ReceiveCall& call) const;
  // Why that peer has gone; kOk if it has not.
  Status peer_status(fi_addr_t address) const { return connections_.status(address); }
  void reconnect_if_gone(fi_addr_t address) {
    connections_.reconnect(address, connections_.peer(address));
  }
  const AddressVector* vector() const { return connections_.vector(); }

 private:
  bool is_endpoint_enabled() const { return lane_.sends; }

  Lane& lane_;
  Transport& transport_;
  Connections& connections_;
  OutstandingOperations& operations_;
  ReceivePoster& poster_;
  Activity& activity_;
};

}  // namespace pullman::ofi
