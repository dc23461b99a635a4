// What the kernel's error numbers mean for a datagram, and the socket's error queue, where the
// network's answers to earlier datagrams (ICMP) arrive. Cold.
#pragma once

#include <cstdint>

#include "nic/peers.h"
#include "nic/port.h"

namespace pullman::nic::udp {

// Of a send call that failed.
enum class Trouble : std::uint8_t {
  kFull,         // no room now in the socket: offer it again
  kRefused,      // none in the device's queue: now, for so much, or for that destination
  kTooLong,      // more than the interface, or the path, carries in one piece
  kNoOffload,    // a burst that the kernel or the NIC does not cut up
  kForbidden,    // by a packet filter of this host
  kUndelivered,  // nobody there, no neighbour, the interface down: for this packet, or an earlier
                 // one of which the news came only now
  kNoWay,        // no route, or the device that the socket is bound to is gone: lost
  kBroken,       // the socket is beyond use
};

Trouble trouble_of(int error, bool burst);

// Notes a packet that was lost so.
void note_lost(Trouble trouble, int error, PortCounters& counters);

// Whether a receive call that failed says that the socket is beyond use.
bool is_fatal(int error);

// Empties the error queue: counts what came back, and notes what paths carry and where nobody
// listens.
void drain_errors(int socket, Peers& peers, PortCounters& counters);

}  // namespace pullman::nic::udp
