#include "ofi/endpoint/connections.h"

#include "ofi/address_vector.h"
#include "ofi/guarded.h"

namespace pullman::ofi {

void Connections::bind(AddressVector& vector) {
  vector_ = &vector;
  peers_.name_contexts(vector.context_bits());
  vector_->attach(*this);
  if (transport_.is_open()) connect_all();  // it may have been opened to be asked for its name
}

void Connections::unbind() {
  if (vector_ != nullptr) vector_->detach(*this);
}

std::size_t Connections::expected_peers() const {
  return vector_ != nullptr ? vector_->expected() : 0;
}

void Connections::connect_all() {
  if (vector_ != nullptr) vector_->connect_all(*this);
}

int Connections::connect(fi_addr_t number, const Address& address) {
  if (!transport_.is_open()) return 0;  // connect_all() follows
  return -guarded([&]() -> int {
    peers_.set(number, transport_->connect(address.text()));
    return 0;
  });
}

void Connections::remove(fi_addr_t number) {
  activity_.note_call();
  const PeerId removed = peers_.peer(number);
  peers_.erase(number);
  if (!transport_.is_open() || removed == kAnyPeer) return;
  if (peers_.number(removed) != FI_ADDR_NOTAVAIL) return;
  const PeerState state = transport_->peer_state(removed);
  if (state == PeerState::kConnecting || state == PeerState::kGone) transport_->abandon(removed);
}

bool Connections::has_address(fi_addr_t address) const {
  return vector_ != nullptr && find(address) != nullptr;
}

Status Connections::status(fi_addr_t address) const {
  return transport_.is_open() ? transport_->peer_status(peer(address)) : Status::kOk;
}

void Connections::reconnect(fi_addr_t address, PeerId gone) {
  if (!transport_.is_open()) return;  // it may share its receives with an open endpoint
  const PeerState state = transport_->peer_state(gone);
  if (state != PeerState::kGone && state != PeerState::kUnknown) return;
  const Address* const known = find(address);
  if (known != nullptr) connect(peers_.without_context(address), *known);
}

const Address* Connections::find(fi_addr_t address) const {
  return vector_->find(peers_.without_context(address));
}

}  // namespace pullman::ofi
