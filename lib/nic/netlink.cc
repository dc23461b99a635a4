#include "nic/netlink.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace pullman::nic {
namespace {

// A full message about an interface takes 2 to 4 KiB.
constexpr std::size_t kMaxBytes = 16384;
constexpr int kPatienceMs = 100;

}  // namespace

Netlink::Netlink(std::uint32_t groups)
    : descriptor_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE)) {
  if (descriptor_ < 0 || groups == 0) return;
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  own.nl_groups = groups;
  if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return;
  close(descriptor_);
  descriptor_ = -1;
}

Netlink::~Netlink() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool Netlink::send(std::span<const std::byte> request) const {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const ssize_t sent = sendto(descriptor_, request.data(), request.size(), 0,
                              reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  return sent == static_cast<ssize_t>(request.size());
}

bool Netlink::wait() const {
  pollfd what{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return poll(&what, 1, kPatienceMs) == 1;
}

Netlink::Received Netlink::receive(const Handler& handle) const {
  alignas(nlmsghdr) std::array<std::byte, kMaxBytes> buffer;
  sockaddr_nl from{};
  socklen_t from_bytes = sizeof from;
  const ssize_t got = recvfrom(descriptor_, buffer.data(), buffer.size(), MSG_TRUNC,
                               reinterpret_cast<sockaddr*>(&from), &from_bytes);
  if (got < 0) return errno == ENOBUFS ? Received::kLost : Received::kNothing;
  if (from.nl_pid != 0) return Received::kMessages;  // not from the kernel: ignored
  if (static_cast<std::size_t>(got) > buffer.size()) return Received::kLost;
  auto left = static_cast<std::size_t>(got);
  for (auto* at = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(at, left);
       at = NLMSG_NEXT(at, left)) {
    handle(*at);
  }
  return Received::kMessages;
}

std::span<const std::byte> attribute(const nlmsghdr& message, std::size_t head_bytes,
                                     unsigned kind) {
  const std::size_t before = NLMSG_SPACE(head_bytes);
  if (message.nlmsg_len < before) return {};
  const auto* const bytes = reinterpret_cast<const std::byte*>(&message);
  return nested_attribute({bytes + before, message.nlmsg_len - before}, kind);
}

std::span<const std::byte> nested_attribute(std::span<const std::byte> outer, unsigned kind) {
  std::size_t left = outer.size();
  for (auto* at = reinterpret_cast<const rtattr*>(outer.data()); RTA_OK(at, left);
       at = RTA_NEXT(at, left)) {
    if ((at->rta_type & NLA_TYPE_MASK) != kind) continue;
    return {static_cast<const std::byte*>(RTA_DATA(at)), RTA_PAYLOAD(at)};
  }
  return {};
}

std::span<const std::byte> ip_bytes(const Address& address) {
  const std::size_t bytes = address.kind == 4 ? 4 : address.kind == 6 ? 16 : 0;
  return {address.bytes.data(), bytes};
}

}  // namespace pullman::nic
