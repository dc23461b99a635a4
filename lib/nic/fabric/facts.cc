#include "nic/fabric/facts.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace pullman::nic::fabric {
namespace {

constexpr std::size_t kDepthIfUnstated = 256;

std::size_t prefix(const fi_info& info, std::uint64_t direction_mode) {
  // A provider that sets only the common mode means both directions.
  const std::uint64_t per_direction = info.tx_attr->mode | info.rx_attr->mode;
  const std::uint64_t mode = (per_direction & FI_MSG_PREFIX) != 0 ? direction_mode : info.mode;
  return (mode & FI_MSG_PREFIX) != 0 ? info.ep_attr->msg_prefix_size : 0;
}

}  // namespace

Facts facts_of(const fi_info& info) {
  Facts facts;
  facts.send_prefix = prefix(info, info.tx_attr->mode);
  facts.receive_prefix = prefix(info, info.rx_attr->mode);
  // usnic counts the prefix of a send in max_msg_size, as the manual may be read; efa does not.
  // Subtracting it once is right for the former and costs the latter 40 bytes of its 8 KiB.
  facts.payload_bytes =
      info.ep_attr->max_msg_size - std::min(info.ep_attr->max_msg_size, facts.send_prefix);
  facts.send_depth = info.tx_attr->size != 0 ? info.tx_attr->size : kDepthIfUnstated;
  facts.receive_depth = info.rx_attr->size != 0 ? info.rx_attr->size : kDepthIfUnstated;
  facts.local_registration = (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  const bool udp = std::strcmp(info.fabric_attr->prov_name, "udp") == 0;
  facts.sends_at_once = udp && info.tx_attr->inject_size >= facts.payload_bytes;
  facts.resolves_at_once = udp;
  facts.one_per_read = udp;
  // Also as the core of a stack of providers: "verbs;ofi_rxd".
  facts.verbs_status = std::strncmp(info.fabric_attr->prov_name, "verbs", 5) == 0;
  return facts;
}

}  // namespace pullman::nic::fabric
