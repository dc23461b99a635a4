#include "nic/udp/coalescing.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace pullman::nic::udp {
namespace {

bool set_gro(int socket, int on) {
  return setsockopt(socket, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

}  // namespace

// Packets that have arrived before are received either way.
void Coalescing::switch_on() {
  on_ = set_gro(socket_, 1);
  possible_ = on_;
}

// Packets that were coalesced cannot be told apart afterwards, so the socket must hold none. One
// that the kernel is just adding, begun before the switch, would be refused as a packet of wrong
// length and retransmitted: that is the price, and it was never seen.
void Coalescing::try_switch_off() {
  quiet_ = 0;
  set_gro(socket_, 0);
  int bytes_waiting = 0;
  const bool empty = ioctl(socket_, FIONREAD, &bytes_waiting) == 0 && bytes_waiting == 0;
  on_ = !empty && set_gro(socket_, 1);
}

}  // namespace pullman::nic::udp
