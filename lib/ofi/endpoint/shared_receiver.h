// The part of an endpoint that uses a shared receive context (fi_srx_context()): offers it the
// messages that arrive at this endpoint, and receives those that it has a receive for.
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
  // `lane` is the endpoint's own; its queue and counter report what is received.
  SharedReceiver(Lane& lane, Transport& transport, Connections& connections,
                 OutstandingOperations& operations, ReceivePoster& poster, Activity& activity)
      : lane_(lane),
        transport_(transport),
        connections_(connections),
        operations_(operations),
        poster_(poster),
        activity_(activity) {}

  // Returns a message that no receive has matched; each is returned once.
  std::optional<Probe> next_unexpected(Space space);
  bool matches(const ReceiveCall& call, const Probe& message) const;
  // Receives the earliest message here that matches the call; returns false if there is none.
  // `buffer`: the destination, if the call is a multi-receive.
  bool receive(const ReceiveCall& call, MultiReceiveBuffer* buffer);
  // Whether a message is arriving for a receive with that context.
  bool is_receiving(const void* context) const;

  // Reports that such a receive will not be started.
  void report_failure(ReceiveCall call, Status why);
  bool reports_receives() const { return lane_.bindings.receive_queue != nullptr; }

  // --- The peer that a receive names

  bool has_source(const ReceiveCall& call) const;
  // Returns kConnecting if the receive names no peer.
  PeerState source_state(const ReceiveCall& call) const;
  // Returns why that peer has gone; kOk if it has not.
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
