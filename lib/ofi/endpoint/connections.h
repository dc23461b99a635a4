// The peers of an endpoint by their fi_addr_t. The endpoint connects to every address in its
// address vector when it opens, and again when a call names a peer that has gone. Knows no
// operations.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>

#include "ofi/address.h"
#include "ofi/endpoint/activity.h"
#include "ofi/endpoint/peers.h"
#include "ofi/endpoint/transport.h"
#include "pullman/context.h"
#include "pullman/status.h"

namespace pullman::ofi {

class AddressVector;

class Connections {
 public:
  Connections(Transport& transport, Activity& activity)
      : transport_(transport), activity_(activity) {}

  void bind(AddressVector& vector);
  // The endpoint closes.
  void unbind();
  const AddressVector* vector() const { return vector_; }
  // Returns the number of peers that the address vector was opened for.
  std::size_t expected_peers() const;
  // The transport has opened: connects to all addresses of the vector.
  void connect_all();

  // --- For the address vector.

  // Returns 0 or an error number.
  int connect(fi_addr_t number, const Address& address);
  // The peer stays connected: it may still send, and other numbers may name it. A peer that never
  // answered, or is gone, is removed.
  void remove(fi_addr_t number);

  // --- For operations.

  // Returns kAnyPeer if the address names no peer.
  PeerId peer(fi_addr_t address) const { return peers_.peer(address); }
  // Returns FI_ADDR_NOTAVAIL if the peer has no number.
  fi_addr_t number(PeerId peer) const { return peers_.number(peer); }
  // The index of the peer's receive context that the address names (fi_rx_addr()).
  std::uint64_t receive_context(fi_addr_t address) const { return peers_.context(address); }
  bool has_address(fi_addr_t address) const;
  PeerState state(fi_addr_t address) const { return transport_->peer_state(peer(address)); }
  // Returns why the peer has gone; kOk if it has not.
  Status status(fi_addr_t address) const;
  // A call to `gone` has failed. If that peer has gone it may have restarted: connects anew, for
  // the next call.
  void reconnect(fi_addr_t address, PeerId gone);

 private:
  const Address* find(fi_addr_t address) const;

  Transport& transport_;
  Activity& activity_;
  AddressVector* vector_ = nullptr;
  Peers peers_;
};

}  // namespace pullman::ofi
