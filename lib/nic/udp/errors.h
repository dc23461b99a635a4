// The meaning of the kernel's error numbers for a datagram, and the socket's error queue, which
// holds the network's answers to earlier datagrams (ICMP). Cold.
#pragma once

#include <cstdint>

#include "nic/peers.h"
#include "nic/port.h"

namespace pullman::nic::udp {

// Why a send call failed.
enum class Trouble : std::uint8_t {
  kFull,         // the socket is full: offer the packet again
  kRefused,      // the device's queue has no room now, or for so much, or for that destination
  kTooLong,      // longer than the interface, or the path, carries in one packet
  kNoOffload,    // the kernel or the NIC cannot segment a burst
  kForbidden,    // a packet filter of this host drops it
  kUndelivered,  // unreachable, no neighbour, or interface down: this packet, or an earlier one
                 // that is reported only now
  kNoWay,        // no route, or the device of the socket is gone: lost
  kBroken,       // the socket cannot be used any more
};

Trouble trouble_of(int error, bool burst);

// Counts a packet that was lost for that reason.
void note_lost(Trouble trouble, int error, PortCounters& counters);

// Whether a failed receive call means that the socket cannot be used any more.
bool is_fatal(int error);

// Empties the error queue: counts returned packets, and notes path MTUs and refusing hosts.
void drain_errors(int socket, Peers& peers, PortCounters& counters);

}  // namespace pullman::nic::udp
