#include "nic/routes.h"

#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "nic/netlink.h"
#include "nic/prefix.h"

namespace pullman::nic {
namespace {

bool is_ip(const Address& address) {
  return !ip_bytes(address).empty();
}

// A request for the route to an address from one of our own. If it names an interface (not 0) the
// kernel takes every address without a route for a neighbour.
class Question {
 public:
  Question(const Address& own, const Address& to, unsigned interface) {
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
    if (interface != 0) append_attribute(RTA_OIF, std::as_bytes(std::span(&interface, 1)));
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

// The kernel's answer about the route to an address.
struct Route {
  enum class Kind : std::uint8_t {
    kUnknown,
    kNone,   // no route, or a forbidding one
    kLocal,  // the address is ours
    kDirect,
    kGateway,
  };
  Kind kind = Kind::kUnknown;
  unsigned interface = 0;  // that packets leave by; 0 unknown
};

Route from_error(const nlmsghdr& message) {
  int error = 0;
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof error)) return {};
  std::memcpy(&error, NLMSG_DATA(&message), sizeof error);
  switch (-error) {
    // No route, or one of kind unreachable, prohibit (EACCES) or blackhole (EINVAL).
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EACCES:
    case EINVAL:
    case ENETDOWN:
    case ENODEV:
      return {.kind = Route::Kind::kNone};
    default:
      return {};
  }
}

Route from_route(const nlmsghdr& message) {
  rtmsg head{};
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof head)) return {};
  std::memcpy(&head, NLMSG_DATA(&message), sizeof head);
  if (head.rtm_type == RTN_LOCAL) return {.kind = Route::Kind::kLocal};
  if (head.rtm_type != RTN_UNICAST) return {.kind = Route::Kind::kNone};
  Route out;
  const auto said = attribute(message, sizeof head, RTA_OIF);
  if (said.size() == sizeof out.interface) {
    std::memcpy(&out.interface, said.data(), sizeof out.interface);
  }
  const bool gateway = !attribute(message, sizeof head, RTA_GATEWAY).empty() ||
                       !attribute(message, sizeof head, RTA_VIA).empty();
  out.kind = gateway ? Route::Kind::kGateway : Route::Kind::kDirect;
  return out;
}

// `interface`: as for Question.
Route ask_kernel(const Address& own, const Address& to, unsigned interface) {
  constexpr int kMaxReplies = 4;
  const Netlink kernel;
  if (kernel.fd() < 0 || !kernel.send(Question(own, to, interface).bytes())) return {};
  std::optional<Route> answer;
  for (int i = 0; i < kMaxReplies && !answer && kernel.wait(); ++i) {
    kernel.receive([&](const nlmsghdr& message) {
      if (message.nlmsg_seq != Question::kNumber) return;
      if (message.nlmsg_type == NLMSG_ERROR) answer = from_error(message);
      if (message.nlmsg_type == RTM_NEWROUTE) answer = from_route(message);
    });
  }
  return answer.value_or(Route{});
}

Reach reach_of(const Route& route) {
  switch (route.kind) {
    case Route::Kind::kNone:
      return Reach::kNone;
    case Route::Kind::kLocal:
    case Route::Kind::kDirect:
      return Reach::kDirect;
    case Route::Kind::kUnknown:
    case Route::Kind::kGateway:
      return Reach::kRouted;
  }
  return Reach::kRouted;
}

bool leads_elsewhere(const Route& route, unsigned interface) {
  return interface != 0 && route.interface != 0 && route.interface != interface;
}

bool is_in_subnet(const Device& device, const Address& own, const Address& to) {
  return device.prefix_bits != 0 && contains({own, device.prefix_bits}, to);
}

}  // namespace

Reach reach_from(const Device& device, const Address& own, const Address& to) {
  if (own.kind != to.kind) return Reach::kNone;
  if (!is_ip(own)) return Reach::kRouted;
  if (device.loopback || is_loopback(to)) {
    return device.loopback && is_loopback(to) ? Reach::kOwn : Reach::kNone;
  }
  if (nic::same_host(own, to)) return Reach::kOwn;
  const bool ipv6_link = own.kind == 6 && is_link_local(own);
  if (ipv6_link || (to.kind == 6 && is_link_local(to))) {
    return ipv6_link && is_link_local(to) ? Reach::kDirect : Reach::kNone;
  }
  const unsigned interface = if_nametoindex(device.name.c_str());
  const Route best = ask_kernel(own, to, 0);
  if (best.kind == Route::Kind::kLocal) return Reach::kOwn;
  if (is_in_subnet(device, own, to)) return Reach::kDirect;
  if (!leads_elsewhere(best, interface)) return reach_of(best);
  const bool gateway = ask_kernel(own, to, interface).kind == Route::Kind::kGateway;
  return gateway ? Reach::kRouted : Reach::kNone;
}

bool only_by_others(const Device& device, const Address& own, const Address& to) {
  const unsigned interface = if_nametoindex(device.name.c_str());
  if (interface == 0 || own.kind != to.kind || !is_ip(own) || is_link_local(to)) return false;
  const Route best = ask_kernel(own, to, 0);
  switch (best.kind) {
    case Route::Kind::kLocal:
      return ask_kernel(own, to, interface).kind != Route::Kind::kLocal;
    case Route::Kind::kDirect:
    case Route::Kind::kGateway:
      return leads_elsewhere(best, interface) && !is_in_subnet(device, own, to) &&
             ask_kernel(own, to, interface).kind != Route::Kind::kGateway;
    case Route::Kind::kUnknown:
    case Route::Kind::kNone:
      return false;
  }
  return false;
}

}  // namespace pullman::nic
