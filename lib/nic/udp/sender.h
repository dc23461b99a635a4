// The sending half of a port: sends the caller's packets with as few system calls as possible.
//
// Packets of one size to one destination (the last may be shorter) make a burst: one message that
// the kernel, or the NIC, segments again (UDP_SEGMENT). It is copied together first: the kernel
// takes longer over two segments per packet than the copy takes (decision 0004). The bursts and
// single packets of a batch are sent by one sendmmsg(), at most four of the longest bursts; a burst
// alone by sendmsg(); a packet alone by sendto(), or by send() if there is a socket connected to
// its destination. Packets to destinations that are by_others() (Peers) use a socket of their own.
// If the kernel refuses bursts as such they end for good; if one is too long for the device's queue
// they become shorter for a while.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/peers.h"
#include "nic/port.h"
#include "nic/udp/refusals.h"

namespace pullman::nic::udp {

class Sender {
 public:
  static constexpr std::size_t kMaxBytes = 65507;  // in a burst: the payload of a UDP datagram

  // `bursts`: the kernel knows UDP_SEGMENT.
  Sender(int socket, Peers& peers, bool bursts);

  std::size_t send(std::span<const Outgoing> batch, PortCounters& counters);

  // Sends packets for `to`, and only those, by this socket from now on, which is connected to it.
  void go_directly(Destination to, int socket) {
    direct_to_ = to;
    direct_socket_ = socket;
  }
  // Sends packets to destinations that are by_others() by this socket.
  void go_by_others(int socket) { others_socket_ = socket; }
  Destination direct_to() const { return direct_to_; }

  std::size_t burst_bytes() const { return bursts_ ? kMaxBytes : 0; }
  bool broken() const { return broken_; }
  // Whether, since looked_for_device(), a packet found no route: the device that a socket is bound
  // to may be gone.
  bool misses_device() const { return misses_device_; }
  void looked_for_device() { misses_device_ = false; }

 private:
  static constexpr std::size_t kMaxPackets = kBatchPackets;  // per call
  static constexpr std::size_t kMaxTogether = 64;            // per burst: UDP_MAX_SEGMENTS

  enum class Outcome : std::uint8_t {
    kTaken,  // sent, or lost
    kFull,   // not taken
  };
  // One message of a sendmmsg(): a packet or a burst.
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> bytes;
  };

  bool is_direct(const Outgoing& packet) const { return packet.to == direct_to_; }
  int socket_for(const Outgoing& packet) const {
    if (is_direct(packet)) return direct_socket_;
    return peers_.by_others(packet.to) ? others_socket_ : socket_;
  }
  Outcome send_one(const Outgoing& packet, PortCounters& counters);
  void tell_forbidden(Destination to);
  ssize_t call(const Outgoing& packet) const;
  int call_for_several(int socket);
  std::size_t send_several(std::span<const Outgoing> batch, PortCounters& counters, bool& full);
  std::size_t send_apart(std::span<const Outgoing> batch, PortCounters& counters, bool& full);
  std::size_t send_shorter(std::span<const Outgoing> burst, PortCounters& counters, bool& full);
  std::size_t send_refused(std::span<const Outgoing> burst, PortCounters& counters, bool& full);
  void prepare(std::span<const Outgoing> batch);
  std::size_t burst_length(std::span<const Outgoing> batch) const;
  static std::size_t put_together(std::span<const Outgoing> burst, std::byte* at);

  int socket_;
  Peers& peers_;
  bool bursts_;
  bool broken_ = false;
  bool told_forbidden_ = false;
  bool misses_device_ = false;
  Refusals refusals_;
  BurstLimit limit_{kMaxBytes};
  Destination direct_to_ = kInvalidDestination;
  int direct_socket_ = -1;
  int others_socket_ = -1;
  std::size_t count_ = 0;                           // messages prepared
  std::array<std::uint32_t, kMaxPackets> packets_;  // of each message
  std::array<mmsghdr, kMaxPackets> messages_{};
  std::array<iovec, 2 * kMaxPackets> segments_;
  std::array<Control, kMaxPackets> controls_{};
};

}  // namespace pullman::nic::udp
