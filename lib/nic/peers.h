// The addresses a port sends to: a destination is an index into a table of sockaddrs. The kernel
// resolves neighbours, packet by packet; here resolving only means that this socket can send to the
// address.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/check.h"
#include "nic/port.h"

namespace pullman::nic {

class Peers {
 public:
  // `own`: the address that the socket is bound to.
  explicit Peers(const Address& own);

  // Returns the destination, which an event will follow; kInvalidDestination if it cannot be
  // reached.
  Destination resolve(const Address& address, std::uint64_t cookie);
  void forget(Destination to);
  std::size_t take_events(std::span<PortEvent> out) {
    looks_left_ = kLooks;
    return events_.empty() ? 0 : take(out);
  }

  const sockaddr* name_of(Destination to) const {
    PULLMAN_DCHECK(to < peers_.size());
    return reinterpret_cast<const sockaddr*>(&peers_[to].name);
  }
  socklen_t name_bytes() const { return name_bytes_; }

  // A socket that is not bound to a device sends to it: see only_by_others().
  void set_by_others(Destination to) { peers_[to].by_others = true; }
  bool by_others(Destination to) const { return peers_[to].by_others; }

  // --- ICMP messages, which anybody can forge. Each makes a search of all destinations; after
  // kLooks of them since the last take_events() others are ignored. A true one will be repeated.

  // The host itself reports that nobody listens at the port: makes an event for each matching
  // destination, with the quoted bytes of the packet.
  void note_refused(const sockaddr* name, std::span<const std::byte> quoted);
  // The network reports that the path to that address carries IP packets of `mtu` bytes.
  void note_path_mtu(const sockaddr* name, std::size_t mtu);
  // Returns the largest datagram that the path is known to carry; 0 if unknown.
  std::size_t path_bytes(Destination to) const { return peers_[to].path_bytes; }

 private:
  union Name {
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  };
  struct Peer {
    Name name{};
    std::uint16_t path_bytes = 0;
    bool in_use = true;
    bool by_others = false;
    std::uint64_t cookie = 0;  // given to resolve()
  };
  static constexpr std::size_t kMaxRefusals = 4;  // most that wait for take_events()
  static constexpr std::size_t kLooks = 8;

  std::size_t take(std::span<PortEvent> out);
  bool may_look() { return looks_left_ != 0 && looks_left_-- != 0; }
  bool can_reach(const Address& address) const;
  Destination add(const Address& address, std::uint64_t cookie);

  Address own_;
  socklen_t name_bytes_;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> free_;  // indices of forgotten destinations
  std::deque<PortEvent> events_;     // at most one per resolve(), and a few refusals
  std::size_t refusals_ = 0;         // how many of `events_` are refusals
  std::size_t looks_left_ = kLooks;
};

}  // namespace pullman::nic
