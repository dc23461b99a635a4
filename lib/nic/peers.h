// The addresses a port sends to: a destination is an index into a table of what the kernel wants to
// hear. Resolution is the kernel's affair, packet by packet; here it only means that the address is
// one this socket can send to.
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
  // `own`: the address the socket is bound to.
  explicit Peers(const Address& own);

  // The destination, of which there will be an event; kInvalidDestination if it cannot be reached.
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

  // It is sent to by a socket that is not bound to a device: see only_by_others().
  void set_by_others(Destination to) { peers_[to].by_others = true; }
  bool by_others(Destination to) const { return peers_[to].by_others; }

  // What the network says, or somebody in its name: each looks at all destinations, and is let pass
  // when there were kLooks since the last take_events(). What is true is said again.

  // Nobody listens there, says the host itself: an event for each destination that is meant, with
  // what is quoted of the packet.
  void note_refused(const sockaddr* name, std::span<const std::byte> quoted);
  // The path to that address carries IP packets of `mtu` bytes, says the network.
  void note_path_mtu(const sockaddr* name, std::size_t mtu);
  // The largest datagram that the path is known to carry; 0 if nothing is known.
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
    std::uint64_t cookie = 0;  // it was resolved with
  };
  static constexpr std::size_t kMaxRefusals = 4;  // whose events wait to be taken
  static constexpr std::size_t kLooks = 8;

  std::size_t take(std::span<PortEvent> out);
  bool may_look() { return looks_left_ != 0 && looks_left_-- != 0; }
  bool can_reach(const Address& address) const;
  Destination add(const Address& address, std::uint64_t cookie);

  Address own_;
  socklen_t name_bytes_;
  std::vector<Peer> peers_;
  std::vector<std::uint32_t> free_;  // places of forgotten ones
  std::deque<PortEvent> events_;     // one per resolve() at most, and a few refusals
  std::size_t refusals_ = 0;         // among them
  std::size_t looks_left_ = kLooks;
};

}  // namespace pullman::nic
