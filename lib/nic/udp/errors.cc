#include "nic/udp/errors.h"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace pullman::nic::udp {
namespace {

constexpr int kMaxAtOnce = 64;

struct Error {
  sock_extended_err what{};
  sockaddr_storage offender{};  // the sender of the ICMP message
};

std::optional<Error> error_in(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    const bool ip = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR;
    const bool ipv6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR;
    if (!ip && !ipv6) continue;
    Error error;
    const std::size_t bytes = part->cmsg_len - CMSG_LEN(0);
    if (bytes < sizeof error.what) return std::nullopt;
    std::memcpy(&error.what, CMSG_DATA(part), sizeof error.what);
    const std::size_t more = std::min(bytes - sizeof error.what, sizeof error.offender);
    std::memcpy(&error.offender, CMSG_DATA(part) + sizeof error.what, more);
    return error;
  }
  return std::nullopt;
}

// Whether the host with that address reports that nobody listens at the port. A filter on the way
// reports it, too, but in its own name.
bool is_refusal(const Error& error, const sockaddr* to) {
  const bool port_unreachable =
      (error.what.ee_origin == SO_EE_ORIGIN_ICMP && error.what.ee_type == ICMP_DEST_UNREACH &&
       error.what.ee_code == ICMP_PORT_UNREACH) ||
      (error.what.ee_origin == SO_EE_ORIGIN_ICMP6 && error.what.ee_type == ICMP6_DST_UNREACH &&
       error.what.ee_code == ICMP6_DST_UNREACH_NOPORT);
  if (!port_unreachable) return false;
  const auto* by = reinterpret_cast<const sockaddr*>(&error.offender);
  const auto speaker = from_sockaddr(by, sizeof error.offender);
  const auto meant = from_sockaddr(to, sizeof(sockaddr_storage));
  return speaker && meant && same_port(with_port(*speaker, 0), with_port(*meant, 0));
}

}  // namespace

Trouble trouble_of(int error, bool burst) {
  switch (error) {
    case EAGAIN:
    case EINTR:
      return Trouble::kFull;
    case ENOBUFS:
    case ENOMEM:
      return Trouble::kRefused;
    case EMSGSIZE:
      return Trouble::kTooLong;
    // No checksum offload, or a kernel that allows fewer segments. A plain packet gets none of
    // these errors, and no ICMP message, which anybody may forge, is reported as one of them
    // (icmp_err_convert[] in the kernel's net/ipv4/icmp.c, tab_unreach[] in its net/ipv6/icmp.c).
    case EIO:
    case EINVAL:
      return burst ? Trouble::kNoOffload : Trouble::kUndelivered;
    case EBADF:
    case ENOTSOCK:
      return Trouble::kBroken;
    case EPERM:
      return Trouble::kForbidden;
    // For a device that is gone IPv4 reports the former and IPv6 the latter, which an ICMP message
    // causes, too.
    case ENODEV:
    case ENETUNREACH:
      return Trouble::kNoWay;
    // ECONNREFUSED, EHOSTUNREACH, ENOPROTOOPT, EOPNOTSUPP: ICMP, or no route. ENETDOWN: the
    // interface is down, which nic/link_watch.h reports, too. All may be temporary.
    default:
      return Trouble::kUndelivered;
  }
}

void note_lost(Trouble trouble, int error, PortCounters& counters) {
  ++counters.send_errors;
  if (trouble == Trouble::kTooLong) {
    ++counters.too_long;
  } else {
    counters.errors.note(class_of(error), error);
  }
}

bool is_fatal(int error) {
  return error == EBADF || error == ENOTSOCK;
}

void drain_errors(int socket, Peers& peers, PortCounters& counters) {
  for (int i = 0; i < kMaxAtOnce; ++i) {
    sockaddr_storage to{};
    alignas(cmsghdr) char control[256];
    std::array<std::byte, PortEvent::kMaxQuoted> quoted;  // first bytes of the packet
    iovec place{quoted.data(), quoted.size()};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    message.msg_name = &to;  // the packet's destination
    message.msg_namelen = sizeof to;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (got < 0) return;
    const auto error = error_in(message);
    if (!error) continue;
    const auto* name = reinterpret_cast<const sockaddr*>(&to);
    const bool from_network = error->what.ee_origin != SO_EE_ORIGIN_LOCAL;
    if (error->what.ee_errno == EMSGSIZE) {
      counters.too_long += from_network;
      peers.note_path_mtu(name, error->what.ee_info);
    } else {
      counters.returned += from_network;
      const int said = static_cast<int>(error->what.ee_errno);
      counters.errors.note(from_network ? ErrorClass::kRemote : class_of(said), said);
      if (is_refusal(*error, name)) {
        peers.note_refused(name, std::span(quoted).first(static_cast<std::size_t>(got)));
      }
    }
  }
}

}  // namespace pullman::nic::udp
