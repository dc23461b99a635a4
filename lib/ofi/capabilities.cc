#include "ofi/capabilities.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "ofi/authorization_key.h"
#include "ofi/limits.h"
#include "ofi/provider.h"
#include "ofi/versions.h"

namespace pullman::ofi {
namespace {

bool within(std::uint64_t asked, std::uint64_t offered) {
  return (asked & ~offered) == 0;
}

bool names(const char* asked) {
  return asked == nullptr || std::string_view(asked) == kName;
}

bool too_many(std::size_t contexts) {
  return contexts > kMaxContexts && contexts != FI_SHARED_CONTEXT;
}

bool are_mixed(std::size_t one, std::size_t other) {
  const auto is_shared = [](std::size_t contexts) { return contexts == FI_SHARED_CONTEXT; };
  return is_shared(one) != is_shared(other) && one > 1 && other > 1;
}

bool is_key(const std::uint8_t* key, std::size_t bytes) {
  return bytes == 0 ||
         (key != nullptr && bytes >= kMinAuthorizationKey && bytes <= kMaxAuthorizationKey);
}

const char* unmet_endpoint(const fi_ep_attr& asked) {
  if (asked.type != FI_EP_UNSPEC && asked.type != FI_EP_RDM) return "the type of endpoint";
  if (asked.protocol != FI_PROTO_UNSPEC) return "the protocol";
  if (asked.max_msg_size > kMaxMessageBytes) return "max_msg_size";
  if (too_many(asked.tx_ctx_cnt) || too_many(asked.rx_ctx_cnt)) return "so many contexts";
  if (are_mixed(asked.tx_ctx_cnt, asked.rx_ctx_cnt)) return "shared and several contexts together";
  if (!is_key(asked.auth_key, asked.auth_key_size)) return "no auth_key, or so short or long a one";
  return nullptr;
}

const char* unmet_domain(std::uint32_t version, const fi_domain_attr& asked) {
  if (!names(asked.name)) return "the domain's name";
  if (!within(asked.caps, kAlways)) return "a capability of the domain";
  if (!is_key(asked.auth_key, asked.auth_key_size)) return "no auth_key, or so short or long a one";
  if (asked.cq_data_size > kDataBytes) return "cq_data_size";
  if (asked.mr_key_size > sizeof(std::uint64_t)) return "mr_key_size";
  const bool old = FI_VERSION_LT(version, FI_VERSION(1, 5));
  if (old && asked.mr_mode > kScalableRegistration) return "mr_mode";
  return nullptr;
}

}  // namespace

const char* unmet(const fi_tx_attr& asked) {
  if (!within(asked.caps, kAllCaps)) return "a capability of the transmit context";
  if (!within(asked.op_flags, kSendFlags)) return "a default flag of sends";
  if (!within(asked.msg_order, kMessageOrder)) return "an order of sends";
  if (!within(asked.comp_order, kNoOrder)) return "an order of completions";
  if (asked.inject_size > kInjectBytes) return "inject_size";
  if (asked.size > kMaxOperations) return "the size of the transmit context";
  if (asked.iov_limit > kMaxSegments) return "iov_limit of sends";
  if (asked.rma_iov_limit > 1) return "rma_iov_limit";
  return nullptr;
}

const char* unmet(const fi_rx_attr& asked) {
  if (!within(asked.caps, kAllCaps)) return "a capability of the receive context";
  if (!within(asked.op_flags, kReceiveFlags)) return "a default flag of receives";
  if (!within(asked.msg_order, kMessageOrder)) return "an order of receives";
  if (!within(asked.comp_order, kNoOrder)) return "an order of completions";
  if (asked.size > kMaxOperations) return "the size of the receive context";
  if (asked.iov_limit > kMaxSegments) return "iov_limit of receives";
  return nullptr;
}

void describe(fi_tx_attr& tx) {
  tx.msg_order = kMessageOrder;
  tx.inject_size = kInjectBytes;
  tx.size = std::max(tx.size, kQueueSize);
  tx.iov_limit = kMaxSegments;
  tx.rma_iov_limit = 1;
}

void describe(fi_rx_attr& rx) {
  rx.msg_order = kMessageOrder;
  rx.size = std::max(rx.size, kQueueSize);
  rx.iov_limit = kMaxSegments;
}

std::uint64_t granted_caps(std::uint64_t asked) {
  std::uint64_t caps = asked != 0 ? asked : kAllCaps;
  // If neither direction is named both are meant.
  if ((caps & kMessaging) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) caps |= FI_SEND | FI_RECV;
  constexpr std::uint64_t kWays = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & kMemory) != 0 && (caps & kWays) == 0) caps |= kWays;
  return caps | kAlways;
}

const char* unmet(std::uint32_t version, const fi_info& hints) {
  if (!within(hints.caps, kAllCaps)) return "a capability";
  const char* why = nullptr;
  if (why == nullptr && hints.ep_attr != nullptr) why = unmet_endpoint(*hints.ep_attr);
  // Peers address memory by offset from the region's start, not by virtual address.
  if (why == nullptr && hints.domain_attr != nullptr && (hints.caps & kMemory) != 0 &&
      (hints.domain_attr->mr_mode & kBasicRegistration) != 0) {
    why = "remote memory by address (FI_MR_BASIC)";
  }
  if (why == nullptr && hints.domain_attr != nullptr) {
    why = unmet_domain(version, *hints.domain_attr);
  }
  if (why == nullptr && hints.fabric_attr != nullptr && !names(hints.fabric_attr->name)) {
    why = "the fabric's name";
  }
  if (why == nullptr && hints.tx_attr != nullptr) why = unmet(*hints.tx_attr);
  if (why == nullptr && hints.rx_attr != nullptr) why = unmet(*hints.rx_attr);
  return why;
}

}  // namespace pullman::ofi
