// The receiving half of a port: gets packets with as few system calls as possible.
//
// One call brings one datagram or several, and each may be many packets of one size that the kernel
// has coalesced (UDP_GRO); its control message tells the size. Packets that the caller has no room
// for are kept for its next call. How many datagrams a call asks for follows from how many came
// before. Allocates nothing.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/peers.h"
#include "nic/port.h"
#include "nic/receive_slab.h"
#include "nic/udp/coalescing.h"

namespace pullman::nic::udp {

class Receiver {
 public:
  // `bursts`: the kernel knows UDP_GRO, and may use it. `names`: handles of its buffers begin with
  // that number.
  Receiver(int socket, Peers& peers, std::size_t packet_bytes, bool bursts, std::uint64_t names);

  // See nic::Port::receive().
  std::size_t receive(std::span<Incoming> batch, std::size_t enough, PortCounters& counters) {
    return enough == 1 && takes_a_lone_one() ? receive_lone(batch, counters)
                                             : receive_several(batch, enough, counters);
  }
  // Releases `packets` packets of that buffer, which must be one of ours.
  void give_back(std::uint64_t buffer, std::uint32_t packets) {
    slab_.release(buffer - names_, packets);
  }
  bool broken() const { return broken_; }
  // Whether the last receive() left nothing behind.
  bool emptied() const { return emptied_ && next_ == count_; }

 private:
  static constexpr std::size_t kBuffers = 64;
  static constexpr std::size_t kMaxAtOnce = 32;  // datagrams per call

  // A received datagram of one or more packets, some of which have not been handed out yet.
  struct Arrival {
    std::uint32_t buffer = 0;
    std::uint32_t at = 0;  // where the next packet begins
    std::uint32_t bytes = 0;
    std::uint32_t packet_bytes = 0;  // of each packet; the last may be shorter
  };
  struct alignas(cmsghdr) Control {
    std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
  };

  // Returns how many datagrams to ask for, assuming that each holds as many packets as the last
  // did. No more than can be handed out at once: data used while it is in the cache costs half as
  // much.
  std::size_t datagrams_for(std::size_t packets) const {
    return std::max<std::size_t>(packets / together_, 1);
  }
  // Whether no packet is left over and the next call is recv().
  bool takes_a_lone_one() const {
    return next_ == count_ && datagrams_ == 1 && !coalescing_.on() && slab_.free() != 0;
  }
  std::size_t receive_lone(std::span<Incoming> batch, PortCounters& counters);
  std::size_t receive_several(std::span<Incoming> batch, std::size_t enough,
                              PortCounters& counters);
  std::size_t hand_out(std::span<Incoming> batch);
  std::size_t fill(std::size_t wanted, PortCounters& counters);
  int call(std::size_t datagrams);
  ssize_t call_for_one();
  void aim(std::size_t place);
  void accept(std::size_t place, PortCounters& counters);
  bool survives(int error, PortCounters& counters);

  int socket_;
  Peers& peers_;
  std::size_t packet_bytes_;
  std::uint64_t names_;
  bool broken_ = false;
  bool emptied_ = false;  // whether the last receive() emptied the socket
  Coalescing coalescing_;
  ReceiveSlab slab_{kBuffers};
  std::size_t datagrams_ = 1;  // that the next call asks for
  std::size_t together_ = 1;   // packets in the last datagram
  std::size_t next_ = 0;       // the first arrival that is not handed out
  std::size_t count_ = 0;      // number of arrivals
  std::array<Arrival, kMaxAtOnce> arrivals_;
  std::array<std::uint32_t, kMaxAtOnce> aimed_{};  // the buffer of each message
  std::array<mmsghdr, kMaxAtOnce> messages_{};
  std::array<iovec, kMaxAtOnce> segments_{};
  std::array<Control, kMaxAtOnce> controls_;
};

}  // namespace pullman::nic::udp
