#include "ofi/info.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "ofi/address.h"
#include "ofi/capabilities.h"
#include "ofi/endpoint/requested_address.h"
#include "ofi/guarded.h"
#include "ofi/limits.h"
#include "ofi/nic_attributes.h"
#include "ofi/provider.h"
#include "ofi/versions.h"
#include "pullman/operations.h"

namespace pullman::ofi {
namespace {

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

constexpr std::uint64_t kNumericHost = FI_NUMERICHOST;

// Describes the provider for an application without hints.
Info describe_provider() {
  Info info(fi_allocinfo());
  if (info == nullptr) throw std::bad_alloc();
  info->addr_format = FI_SOCKADDR_IN;
  describe(*info->tx_attr);
  describe(*info->rx_attr);
  fi_ep_attr& ep = *info->ep_attr;
  ep.type = FI_EP_RDM;
  ep.protocol = FI_PROTO_UNSPEC;
  ep.protocol_version = 1;
  ep.max_msg_size = kMaxMessageBytes;
  // For atomics, the only operations with such an order; kMaxAtomicBytes is their longest.
  ep.max_order_raw_size = ep.max_order_war_size = ep.max_order_waw_size = kMaxAtomicBytes;
  ep.mem_tag_format = kTagFormat;
  ep.tx_ctx_cnt = ep.rx_ctx_cnt = 1;
  fi_domain_attr& domain = *info->domain_attr;
  domain.name = strdup(kName);
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = domain.data_progress = FI_PROGRESS_MANUAL;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = FI_AV_UNSPEC;
  domain.cq_data_size = kDataBytes;
  domain.mr_key_size = sizeof(std::uint64_t);
  domain.cq_cnt = domain.ep_cnt = domain.tx_ctx_cnt = domain.rx_ctx_cnt = domain.cntr_cnt = 65536;
  domain.max_ep_tx_ctx = domain.max_ep_rx_ctx = kMaxContexts;
  domain.max_ep_stx_ctx = domain.max_ep_srx_ctx = 65536;
  domain.mr_iov_limit = 1;
  domain.mr_cnt = 65536;
  domain.caps = kAlways;
  info->fabric_attr->name = strdup(kName);
  info->fabric_attr->prov_version = provider().version;
  return info;
}

void take_caps(fi_info& info, std::uint64_t asked) {
  info.caps = granted_caps(asked);
  info.tx_attr->caps = info.caps & kSendCaps;
  info.rx_attr->caps = info.caps & kReceiveCaps;
}

// Takes a copy of an authorization key, which fi_freeinfo() frees.
void take_key(std::uint8_t*& key, std::size_t& bytes, const std::uint8_t* asked,
              std::size_t asked_bytes) {
  if (asked_bytes == 0) return;
  key = static_cast<std::uint8_t*>(std::malloc(asked_bytes));
  if (key == nullptr) throw std::bad_alloc();
  std::memcpy(key, asked, asked_bytes);
  bytes = asked_bytes;
}

// Takes the application's choices among what is possible.
void take_domain(fi_domain_attr& domain, const fi_domain_attr& asked, std::uint32_t version) {
  if (asked.threading != FI_THREAD_UNSPEC) domain.threading = asked.threading;
  if (asked.data_progress != FI_PROGRESS_UNSPEC) domain.data_progress = asked.data_progress;
  if (asked.control_progress != FI_PROGRESS_UNSPEC) {
    domain.control_progress = asked.control_progress;
  }
  if (asked.resource_mgmt != FI_RM_UNSPEC) domain.resource_mgmt = asked.resource_mgmt;
  domain.av_type = asked.av_type;
  if (FI_VERSION_LT(version, FI_VERSION(1, 5))) {
    domain.mr_mode =
        asked.mr_mode == kBasicRegistration ? kBasicRegistration : kScalableRegistration;
  } else if ((asked.mr_mode & (kBasicRegistration | kScalableRegistration)) != 0) {
    domain.mr_mode = asked.mr_mode & (kBasicRegistration | kScalableRegistration);
  }
  if (asked.domain != nullptr) domain.domain = asked.domain;
  take_key(domain.auth_key, domain.auth_key_size, asked.auth_key, asked.auth_key_size);
}

void take_hints(fi_info& info, const fi_info& hints, std::uint32_t version) {
  take_caps(info, hints.caps);
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != FI_SOCKADDR) {
    info.addr_format = hints.addr_format;
  }
  info.handle = hints.handle;
  if (hints.domain_attr != nullptr) take_domain(*info.domain_attr, *hints.domain_attr, version);
  if (hints.tx_attr != nullptr) {
    info.tx_attr->op_flags = hints.tx_attr->op_flags;
    info.tx_attr->size = std::max(info.tx_attr->size, hints.tx_attr->size);
    info.tx_attr->tclass = hints.tx_attr->tclass;
  }
  if (hints.rx_attr != nullptr) {
    info.rx_attr->op_flags = hints.rx_attr->op_flags;
    info.rx_attr->size = std::max(info.rx_attr->size, hints.rx_attr->size);
  }
  if (hints.ep_attr != nullptr) {
    if (hints.ep_attr->tx_ctx_cnt != 0) info.ep_attr->tx_ctx_cnt = hints.ep_attr->tx_ctx_cnt;
    if (hints.ep_attr->rx_ctx_cnt != 0) info.ep_attr->rx_ctx_cnt = hints.ep_attr->rx_ctx_cnt;
    take_key(info.ep_attr->auth_key, info.ep_attr->auth_key_size, hints.ep_attr->auth_key,
             hints.ep_attr->auth_key_size);
  }
  if (hints.fabric_attr != nullptr) info.fabric_attr->fabric = hints.fabric_attr->fabric;
}

int family_of(std::uint32_t format) {
  if (format == FI_SOCKADDR_IN) return AF_INET;
  return format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_UNSPEC;
}

void put_address(const fi_info& info, const Address& address, void*& where, std::size_t& length) {
  const Format format(info.addr_format);
  length = format.write(address, nullptr, 0);
  where = std::malloc(length);
  if (where == nullptr) throw std::bad_alloc();
  format.write(address, where, length);
}

// Takes the addresses from node and service or from the hints. Returns false if they cannot be
// used.
bool take_addresses(fi_info& info, const char* node, const char* service, std::uint64_t flags,
                    const fi_info* hints) {
  const std::uint32_t asked = hints != nullptr ? hints->addr_format : std::uint32_t{0};
  const bool ours = (flags & FI_SOURCE) != 0;
  std::optional<Address> source, destination;
  if (node != nullptr || (service != nullptr && ours)) {
    const auto found =
        node != nullptr && asked == FI_ADDR_STR
            ? Address::from_text(node)
            : Address::resolve({.node = node,
                                .service = service,
                                .family = family_of(asked == 0 ? info.addr_format : asked),
                                .numeric = (flags & kNumericHost) != 0,
                                .listening = ours});
    if (!found) return false;
    (ours ? source : destination) = found;
  }
  const Format format(info.addr_format);
  if (hints != nullptr && !source && hints->src_addr != nullptr) {
    source = format.read(hints->src_addr, hints->src_addrlen);
    if (!source) return false;
  }
  if (hints != nullptr && !destination && hints->dest_addr != nullptr) {
    destination = format.read(hints->dest_addr, hints->dest_addrlen);
    if (!destination) return false;
  }
  if (info.addr_format != FI_ADDR_STR && asked != FI_SOCKADDR_IN && asked != FI_SOCKADDR_IN6) {
    for (const auto& one : {source, destination}) {
      if (one) info.addr_format = one->family() == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    }
  }
  if (!source && info.addr_format != FI_ADDR_STR) {
    const bool six = info.addr_format == FI_SOCKADDR_IN6;
    source = Address::any(six ? AF_INET6 : AF_INET);  // on all NICs
  }
  if (source) put_address(info, *source, info.src_addr, info.src_addrlen);
  if (destination) put_address(info, *destination, info.dest_addr, info.dest_addrlen);
  return true;
}

bool knows_format(std::uint32_t format) {
  return format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR || format == FI_SOCKADDR_IN ||
         format == FI_SOCKADDR_IN6 || format == FI_ADDR_STR;
}

}  // namespace

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out) {
  return guarded([&]() -> int {
    if (hints != nullptr) {
      const char* why = knows_format(hints->addr_format) ? unmet(version, *hints) : "addr_format";
      if (why != nullptr) {
        FI_INFO(&provider(), FI_LOG_CORE, "cannot be met: %s\n", why);
        return -FI_ENODATA;
      }
    }
    Info info = describe_provider();
    take_caps(*info, 0);
    if (hints != nullptr) take_hints(*info, *hints, version);
    if (!take_addresses(*info, node, service, flags, hints)) return -FI_ENODATA;
    info->nic = describe_nic(RequestedAddress::from(*info));
    *out = info.release();
    return 0;
  });
}

}  // namespace pullman::ofi
