#include "standin/variant.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace pullman::standin {
namespace {

constexpr int kVerbsModes = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;

// usnic's max_msg_size includes the prefix of a send; efa's does not. The driver subtracts the
// prefix from both, so efa's largest datagram is never asked for.
constexpr std::array<Variant, 3> kVariants{{
    {"usnic", 64, 64, 1472, 1472 + 64, 64, 4095, 0},
    {"verbs", 0, 40, 4096, 4096, 64, 1024, kVerbsModes},
    {"efa", 40, 40, 8192, 8192, 0, 512, kVerbsModes},
}};

const Variant& named(std::string_view name) {
  for (const Variant& variant : kVariants) {
    if (name == variant.name) return variant;
  }
  return kVariants.front();
}

void describe_queues(const Variant& variant, fi_info& info) {
  info.tx_attr->caps = FI_MSG | FI_SEND;
  info.tx_attr->mode = variant.send_prefix != 0 ? FI_MSG_PREFIX : 0;
  info.tx_attr->inject_size = variant.inject_bytes;
  info.tx_attr->size = variant.queue_depth;
  info.tx_attr->iov_limit = 1;
  info.rx_attr->caps = FI_MSG | FI_RECV;
  info.rx_attr->mode = variant.receive_prefix != 0 ? FI_MSG_PREFIX : 0;
  info.rx_attr->size = variant.queue_depth;
  info.rx_attr->iov_limit = 1;
}

bool describe_address(fi_info& info) {
  auto* address = static_cast<sockaddr_in*>(std::calloc(1, sizeof(sockaddr_in)));
  if (address == nullptr) return false;
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  info.addr_format = FI_SOCKADDR_IN;
  info.src_addr = address;
  info.src_addrlen = sizeof *address;
  return true;
}

}  // namespace

const Variant& chosen_variant() {
  const char* name = std::getenv("PULLMAN_STANDIN");
  return named(name != nullptr ? name : "");
}

const Variant& variant_of(const fi_info& info) {
  return named(info.domain_attr->name != nullptr ? info.domain_attr->name : "");
}

fi_info* describe(const Variant& variant) {
  fi_info* info = fi_allocinfo();
  if (info == nullptr) return nullptr;
  info->caps = FI_MSG | FI_SEND | FI_RECV;
  info->mode = FI_MSG_PREFIX;
  info->ep_attr->type = FI_EP_DGRAM;
  info->ep_attr->protocol = FI_PROTO_UDP;
  info->ep_attr->max_msg_size = variant.max_msg_size;
  info->ep_attr->msg_prefix_size = variant.receive_prefix;
  info->ep_attr->tx_ctx_cnt = 1;
  info->ep_attr->rx_ctx_cnt = 1;
  info->domain_attr->name = strdup(variant.name);
  info->domain_attr->threading = FI_THREAD_SAFE;
  info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  info->domain_attr->resource_mgmt = FI_RM_DISABLED;
  info->domain_attr->av_type = FI_AV_MAP;
  info->domain_attr->mr_mode = FI_MR_LOCAL | variant.mr_mode;
  info->domain_attr->cq_cnt = 256;
  info->domain_attr->ep_cnt = 256;
  info->domain_attr->tx_ctx_cnt = 256;
  info->domain_attr->rx_ctx_cnt = 256;
  info->domain_attr->max_ep_tx_ctx = 1;
  info->domain_attr->max_ep_rx_ctx = 1;
  info->fabric_attr->name = strdup("standin");
  describe_queues(variant, *info);
  if (describe_address(*info)) return info;
  fi_freeinfo(info);
  return nullptr;
}

}  // namespace pullman::standin
