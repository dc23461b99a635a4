#include "nic/routes.h"

#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "nic/netlink.h"
#include "nic/prefix.h"

namespace pullman::nic {
namespace {

bool is_ip(const Address& address) {
  return !ip_bytes(address).empty();
}

// A request for the route to an address from one of our own. The interface is not named: asked with
// one, the kernel takes everything that it has no route to for its neighbour.
class Question {
 public:
  Question(const Address& own, const Address& to) {
    const bool ipv6 = to.kind == 6;
    rtmsg head{};
    head.rtm_family = ipv6 ? AF_INET6 : AF_INET;
    head.rtm_dst_len = head.rtm_src_len = ipv6 ? 128 : 32;
    nlmsghdr message{};
    message.nlmsg_type = RTM_GETROUTE;
    message.nlmsg_flags = NLM_F_REQUEST;
    message.nlmsg_seq = kNumber;
    used_ = NLMSG_HDRLEN;
    append(&head, sizeof head);
    append_attribute(RTA_DST, ip_bytes(to));
    append_attribute(RTA_SRC, ip_bytes(own));
    message.nlmsg_len = static_cast<std::uint32_t>(used_);
    std::memcpy(bytes_.data(), &message, sizeof message);
  }

  static constexpr std::uint32_t kNumber = 1;
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(used_); }

 private:
  void append(const void* data, std::size_t bytes) {
    std::memcpy(bytes_.data() + used_, data, bytes);
    used_ += NLMSG_ALIGN(bytes);
  }
  void append_attribute(unsigned short kind, std::span<const std::byte> value) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(value.size())), kind};
    append(&head, sizeof head);
    append(value.data(), value.size());
  }

  alignas(nlmsghdr) std::array<std::byte, 128> bytes_{};
  std::size_t used_ = 0;
};

Reach from_error(const nlmsghdr& message) {
  int error = 0;
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof error)) return Reach::kRouted;
  std::memcpy(&error, NLMSG_DATA(&message), sizeof error);
  switch (-error) {
    // No route, or one of the kinds unreachable, prohibit (EACCES) and blackhole (EINVAL).
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EACCES:
    case EINVAL:
    case ENETDOWN:
    case ENODEV:
      return Reach::kNone;
    default:
      return Reach::kRouted;
  }
}

// What would leave by another interface is not reached from this one. `interface` 0: not known.
Reach from_route(const nlmsghdr& message, unsigned interface) {
  rtmsg head{};
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof head)) return Reach::kRouted;
  std::memcpy(&head, NLMSG_DATA(&message), sizeof head);
  if (head.rtm_type == RTN_LOCAL) return Reach::kDirect;
  if (head.rtm_type != RTN_UNICAST) return Reach::kNone;
  unsigned leaves_by = interface;
  const auto said = attribute(message, sizeof head, RTA_OIF);
  if (said.size() == sizeof leaves_by) std::memcpy(&leaves_by, said.data(), sizeof leaves_by);
  if (interface != 0 && leaves_by != interface) return Reach::kNone;
  const bool gateway = !attribute(message, sizeof head, RTA_GATEWAY).empty() ||
                       !attribute(message, sizeof head, RTA_VIA).empty();
  return gateway ? Reach::kRouted : Reach::kDirect;
}

Reach ask_kernel(const Address& own, const Address& to, unsigned interface) {
  constexpr int kMostReplies = 4;
  const Netlink kernel;
  if (kernel.fd() < 0 || !kernel.send(Question(own, to).bytes())) return Reach::kRouted;
  std::optional<Reach> answer;
  for (int i = 0; i < kMostReplies && !answer && kernel.wait(); ++i) {
    kernel.receive([&](const nlmsghdr& message) {
      if (message.nlmsg_seq != Question::kNumber) return;
      if (message.nlmsg_type == NLMSG_ERROR) answer = from_error(message);
      if (message.nlmsg_type == RTM_NEWROUTE) answer = from_route(message, interface);
    });
  }
  return answer.value_or(Reach::kRouted);
}

}  // namespace

Reach reach_from(const Device& device, const Address& own, const Address& to) {
  if (own.kind != to.kind) return Reach::kNone;
  if (!is_ip(own)) return Reach::kRouted;
  if (device.loopback || is_loopback(to)) {
    return device.loopback && is_loopback(to) ? Reach::kDirect : Reach::kNone;
  }
  const bool ipv6_link = own.kind == 6 && is_link_local(own);
  if (ipv6_link || (to.kind == 6 && is_link_local(to))) {
    return ipv6_link && is_link_local(to) ? Reach::kDirect : Reach::kNone;
  }
  if (device.prefix_bits != 0 && contains({own, device.prefix_bits}, to)) return Reach::kDirect;
  return ask_kernel(own, to, if_nametoindex(device.name.c_str()));
}

}  // namespace pullman::nic
