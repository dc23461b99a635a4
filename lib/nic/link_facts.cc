#include "nic/link_facts.h"

#include <linux/if_link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "nic/netlink.h"

namespace pullman::nic {
namespace {

// Most datagrams of one answer. The default route comes first, so the first of many routes are
// enough.
constexpr int kMaxDumpDatagrams = 256;

std::string text_of(std::span<const std::byte> value) {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  return std::string(text.substr(0, text.find('\0')));
}

int number_of(std::span<const std::byte> value) {
  int number = 0;
  if (value.size() == sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

// Passes everything of one kind that the kernel has to `handle`.
template <typename Head>
void dump(std::uint16_t what, const Head& head, const Netlink::Handler& handle) {
  struct {
    nlmsghdr message;
    Head head;
  } request{};
  request.message.nlmsg_len = NLMSG_LENGTH(sizeof head);
  request.message.nlmsg_type = what;
  request.message.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.head = head;
  const Netlink kernel;
  if (kernel.fd() < 0 || !kernel.send(std::as_bytes(std::span(&request, 1)))) return;
  bool done = false;
  for (int i = 0; i < kMaxDumpDatagrams && !done && kernel.wait(); ++i) {
    kernel.receive([&](const nlmsghdr& message) {
      done = done || message.nlmsg_type == NLMSG_DONE || message.nlmsg_type == NLMSG_ERROR;
      if (!done) handle(message);
    });
  }
}

LinkFacts facts_of(const nlmsghdr& message) {
  ifinfomsg head{};
  std::memcpy(&head, NLMSG_DATA(&message), sizeof head);
  LinkFacts out;
  out.index = head.ifi_index;
  out.name = text_of(attribute(message, sizeof head, IFLA_IFNAME));
  out.kind =
      text_of(nested_attribute(attribute(message, sizeof head, IFLA_LINKINFO), IFLA_INFO_KIND));
  out.master = number_of(attribute(message, sizeof head, IFLA_MASTER));
  const bool elsewhere = !attribute(message, sizeof head, IFLA_LINK_NETNSID).empty();
  if (!elsewhere) out.lower = number_of(attribute(message, sizeof head, IFLA_LINK));
  out.hardware = access(("/sys/class/net/" + out.name + "/device").c_str(), F_OK) == 0;
  return out;
}

void note_leaving_by(std::vector<LinkFacts>& links, int index) {
  const auto found = std::find_if(links.begin(), links.end(),
                                  [&](const LinkFacts& link) { return link.index == index; });
  if (found != links.end()) found->default_route = true;
}

void note_hops(std::vector<LinkFacts>& links, std::span<const std::byte> hops) {
  while (hops.size() >= sizeof(rtnexthop)) {
    rtnexthop hop{};
    std::memcpy(&hop, hops.data(), sizeof hop);
    if (hop.rtnh_len < sizeof hop || hop.rtnh_len > hops.size()) return;
    note_leaving_by(links, hop.rtnh_ifindex);
    hops = hops.subspan(std::min<std::size_t>(hops.size(), RTNH_ALIGN(hop.rtnh_len)));
  }
}

void note_route(std::vector<LinkFacts>& links, const nlmsghdr& message) {
  rtmsg head{};
  if (message.nlmsg_type != RTM_NEWROUTE || message.nlmsg_len < NLMSG_LENGTH(sizeof head)) return;
  std::memcpy(&head, NLMSG_DATA(&message), sizeof head);
  const bool everywhere = head.rtm_dst_len == 0 && head.rtm_src_len == 0;
  if (!everywhere || head.rtm_table != RT_TABLE_MAIN || head.rtm_type != RTN_UNICAST) return;
  note_leaving_by(links, number_of(attribute(message, sizeof head, RTA_OIF)));
  note_hops(links, attribute(message, sizeof head, RTA_MULTIPATH));
}

}  // namespace

std::vector<LinkFacts> read_link_facts() {
  std::vector<LinkFacts> out;
  dump(RTM_GETLINK, ifinfomsg{}, [&](const nlmsghdr& message) {
    const bool whole = message.nlmsg_len >= NLMSG_LENGTH(sizeof(ifinfomsg));
    if (message.nlmsg_type == RTM_NEWLINK && whole) out.push_back(facts_of(message));
  });
  for (const unsigned char family : {AF_INET, AF_INET6}) {
    rtmsg head{};
    head.rtm_family = family;
    dump(RTM_GETROUTE, head, [&](const nlmsghdr& message) { note_route(out, message); });
  }
  return out;
}

}  // namespace pullman::nic
