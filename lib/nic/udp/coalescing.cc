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

// What has arrived before is taken in either way.
void Coalescing::switch_on() {
  on_ = set_gro(socket_, 1);
  possible_ = on_;
}

// Packets that came together cannot be told apart afterwards, so there must be none in the socket.
// One that the kernel is just putting there, begun before the switch, would be refused as a packet
// of wrong length, and sent again: the price of this, and never seen.
void Coalescing::try_switch_off() {
  quiet_ = 0;
  set_gro(socket_, 0);
  int bytes_waiting = 0;
  const bool empty = ioctl(socket_, FIONREAD, &bytes_waiting) == 0 && bytes_waiting == 0;
  on_ = !empty && set_gro(socket_, 1);
}

}  // namespace pullman::nic::udp
