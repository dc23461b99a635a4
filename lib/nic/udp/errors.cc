#include "nic/udp/errors.h"

#include <linux/errqueue.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace pullman::nic::udp {
namespace {

constexpr int kMostAtOnce = 64;

std::optional<sock_extended_err> error_in(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    const bool ip = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR;
    const bool ipv6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR;
    if (!ip && !ipv6) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(part), sizeof error);
    return error;
  }
  return std::nullopt;
}

}  // namespace

Trouble trouble_of(int error, bool burst) {
  switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EINTR:
      return Trouble::kFull;
    case EMSGSIZE:
      return Trouble::kTooLong;
    // No checksum offload, or a kernel that allows fewer segments; a plain packet has none of
    // these.
    case EIO:
    case EINVAL:
    case EOPNOTSUPP:
    case ENOPROTOOPT:
      return burst ? Trouble::kNoOffload : Trouble::kUndelivered;
    case EBADF:
    case ENOTSOCK:
      return Trouble::kBroken;
    // ECONNREFUSED, EHOSTUNREACH, ENETUNREACH: ICMP, or no route. ENETDOWN: the interface is down.
    // EPERM: a packet filter. All may pass.
    default:
      return Trouble::kUndelivered;
  }
}

bool is_fatal(int error) {
  return error == EBADF || error == ENOTSOCK;
}

void drain_errors(int socket, Peers& peers, PortCounters& counters) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    sockaddr_storage to{};
    alignas(cmsghdr) char control[256];
    msghdr message{};
    message.msg_name = &to;  // where the packet was going
    message.msg_namelen = sizeof to;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    const auto error = error_in(message);
    if (!error) continue;
    const bool from_network = error->ee_origin != SO_EE_ORIGIN_LOCAL;
    if (error->ee_errno == EMSGSIZE) {
      counters.too_long += from_network;
      peers.note_path_mtu(reinterpret_cast<const sockaddr*>(&to), error->ee_info);
    } else {
      counters.returned += from_network;
    }
  }
}

}  // namespace pullman::nic::udp
