#include "nic/peers.h"

#include <algorithm>
#include <cstring>

#include "nic/interfaces.h"

namespace pullman::nic {
namespace {

// A scope is meaningful only on the host that uses it. A socket on a link-local address can send to
// one link only: its own.
void adopt_scope(sockaddr_in6& name, const Address& own) {
  sockaddr_storage storage;
  to_sockaddr(own, storage);
  const auto& here = reinterpret_cast<const sockaddr_in6&>(storage);
  if (IN6_IS_ADDR_LINKLOCAL(&name.sin6_addr) && here.sin6_scope_id != 0) {
    name.sin6_scope_id = here.sin6_scope_id;
  }
}

}  // namespace

Peers::Peers(const Address& own) : own_(own) {
  sockaddr_storage storage;
  name_bytes_ = to_sockaddr(own, storage);
}

bool Peers::can_reach(const Address& address) const {
  return address.kind == own_.kind && port_of(address) != 0;
}

Destination Peers::resolve(const Address& address, std::uint64_t cookie) {
  using Kind = PortEvent::Kind;
  if (!can_reach(address)) {
    events_.push_back({.kind = Kind::kResolveFailed, .cookie = cookie});
    return kInvalidDestination;
  }
  const Destination to = add(address, cookie);
  events_.push_back({.kind = Kind::kResolved, .cookie = cookie, .to = to});
  return to;
}

Destination Peers::add(const Address& address, std::uint64_t cookie) {
  sockaddr_storage storage;
  Peer peer;
  peer.cookie = cookie;
  std::memcpy(&peer.name, &storage, to_sockaddr(address, storage));
  if (storage.ss_family == AF_INET6) adopt_scope(peer.name.ipv6, own_);
  if (free_.empty()) {
    peers_.push_back(peer);
    return peers_.size() - 1;
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  peers_[index] = peer;
  return index;
}

void Peers::forget(Destination to) {
  PULLMAN_CHECK(to < peers_.size());
  peers_[to].in_use = false;
  free_.push_back(static_cast<std::uint32_t>(to));
}

std::size_t Peers::take(std::span<PortEvent> out) {
  const std::size_t count = std::min(out.size(), events_.size());
  std::copy_n(events_.begin(), count, out.begin());
  for (const PortEvent& event : out.first(count)) {
    refusals_ -= event.kind == PortEvent::Kind::kRefused;
  }
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

void Peers::note_refused(const sockaddr* name, std::span<const std::byte> quoted) {
  const auto address = from_sockaddr(name, name_bytes_);
  if (!address || !may_look()) return;
  for (std::size_t to = 0; to < peers_.size() && refusals_ < kMaxRefusals; ++to) {
    if (!peers_[to].in_use) continue;
    const auto known = from_sockaddr(name_of(to), name_bytes_);
    if (!known || !same_port(*known, *address)) continue;
    PortEvent event{.kind = PortEvent::Kind::kRefused, .cookie = peers_[to].cookie, .to = to};
    std::copy_n(quoted.begin(), std::min(quoted.size(), event.quoted.size()), event.quoted.begin());
    events_.push_back(event);
    ++refusals_;
  }
}

void Peers::note_path_mtu(const sockaddr* name, std::size_t mtu) {
  const auto address = from_sockaddr(name, name_bytes_);
  if (!address || !may_look()) return;
  const auto bytes = static_cast<std::uint16_t>(largest_datagram(mtu, *address));
  for (Peer& peer : peers_) {
    const auto known = from_sockaddr(reinterpret_cast<const sockaddr*>(&peer.name), name_bytes_);
    if (known && same_host(*known, *address)) peer.path_bytes = bytes;
  }
}

}  // namespace pullman::nic
