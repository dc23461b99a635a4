#include "nic/link_watch.h"

#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/log.h"
#include "nic/interfaces.h"

namespace pullman::nic {
namespace {

constexpr std::uint32_t kGroups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;

// Flags of an interface that has a carrier, and of one whose lower layers are not ready
// nevertheless (from linux/if.h, which conflicts with net/if.h). IFF_RUNNING tells the same, but
// the kernel sets it up to a second late: it checks links that change often once a second.
constexpr unsigned kLowerUp = 1u << 16;
constexpr unsigned kDormant = 1u << 17;

// Most datagrams of one poll; the others are read by the next.
constexpr int kMaxDatagrams = 64;

template <typename Head>
bool read_head(const nlmsghdr& message, Head& head) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof head)) return false;
  std::memcpy(&head, NLMSG_DATA(&message), sizeof head);
  return true;
}

// Whether the address may be used: an IPv6 address may not before duplicate address detection, or
// if that found a duplicate.
bool may_be_used(const ifaddrmsg& head) {
  return (head.ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == 0 ||
         (head.ifa_flags & IFA_F_OPTIMISTIC) != 0;
}

}  // namespace

LinkWatch::LinkWatch(const std::string& interface, const Address& own)
    : interface_(interface), own_(with_port(own, 0)), kernel_(kGroups) {
  if (kernel_.fd() < 0) {
    log().warn(
        "{}: the kernel reports no link events; a link that is down is noticed by missing answers",
        interface);
    return;
  }
  read_state();
}

// Reads the state only after all earlier messages, since the state is newer.
std::size_t LinkWatch::poll(std::span<PortEvent> out) {
  if (kernel_.fd() < 0) return 0;
  if (drain() && read_again_) read_state();
  std::size_t count = 0;
  if (count < out.size() && told_up_ && was_down_) {
    // A link that goes down may lose its addresses before it is reported down.
    if (link_ && !address_) read_state();
    const bool gone = link_ && !address_;
    out[count++] = {.kind = gone ? PortEvent::Kind::kAddressGone : PortEvent::Kind::kLinkDown};
    told_up_ = false;
  }
  if (count < out.size() && !told_up_ && up()) {
    out[count++] = {.kind = PortEvent::Kind::kLinkUp};
    told_up_ = true;
    was_down_ = false;
  }
  return count;
}

// Returns whether all messages were read.
bool LinkWatch::drain() {
  for (int i = 0; i < kMaxDatagrams; ++i) {
    switch (kernel_.receive([this](const nlmsghdr& message) { handle(message); })) {
      case Netlink::Received::kNothing:
        return true;
      case Netlink::Received::kLost:
        read_again_ = address_news_ = true;
        break;
      case Netlink::Received::kMessages:
        break;
    }
  }
  return false;
}

void LinkWatch::read_state() {
  read_again_ = false;
  link_ = address_ = false;
  index_ = static_cast<int>(if_nametoindex(interface_.c_str()));
  for (const Interface& interface : list_interfaces()) {
    if (interface.name != interface_) continue;
    link_ = interface.up;
    address_ = std::any_of(interface.addresses.begin(), interface.addresses.end(),
                           [&](const Address& address) { return same_host(address, own_); });
  }
  note();
}

void LinkWatch::handle(const nlmsghdr& message) {
  switch (message.nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
      return handle_link(message);
    case RTM_NEWADDR:
    case RTM_DELADDR:
      address_news_ = true;
      return handle_address(message);
    default:
      return;
  }
}

void LinkWatch::handle_link(const nlmsghdr& message) {
  ifinfomsg head{};
  // Messages of other families are about the interface's role in a bridge.
  if (!read_head(message, head) || head.ifi_family != AF_UNSPEC) return;
  if (!is_ours(message, head.ifi_index)) return;
  const bool there = message.nlmsg_type == RTM_NEWLINK;
  const unsigned wanted = IFF_UP | kLowerUp;
  index_ = there ? head.ifi_index : 0;
  link_ = there && (head.ifi_flags & (wanted | kDormant)) == wanted;
  note();
}

// Compares the index; an interface that was removed and added again is recognised by its name.
bool LinkWatch::is_ours(const nlmsghdr& message, int index) const {
  if (index_ != 0) return index == index_;
  const auto name = attribute(message, sizeof(ifinfomsg), IFLA_IFNAME);
  const std::string_view text(reinterpret_cast<const char*>(name.data()), name.size());
  return text.substr(0, text.find('\0')) == interface_;
}

void LinkWatch::handle_address(const nlmsghdr& message) {
  ifaddrmsg head{};
  if (!read_head(message, head) || static_cast<int>(head.ifa_index) != index_) return;
  if (head.ifa_family != (own_.kind == 4 ? AF_INET : AF_INET6)) return;
  // Where a link has two ends the local one is in an attribute of its own.
  auto address = attribute(message, sizeof head, IFA_LOCAL);
  if (address.empty()) address = attribute(message, sizeof head, IFA_ADDRESS);
  const auto own = ip_bytes(own_);
  if (!std::equal(address.begin(), address.end(), own.begin(), own.end())) return;
  address_ = message.nlmsg_type == RTM_NEWADDR && may_be_used(head);
  note();
}

void LinkWatch::note() {
  was_down_ = was_down_ || !up();
}

}  // namespace pullman::nic
