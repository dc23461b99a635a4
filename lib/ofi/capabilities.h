// What this provider can do, as libfabric's bits, and whether it is what an application needs.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstdint>

namespace pullman::ofi {

inline constexpr std::uint64_t kMessaging = FI_MSG | FI_TAGGED;
// Reads and writes of a peer's memory, and atomics.
inline constexpr std::uint64_t kMemory = FI_RMA | FI_ATOMIC;
// Capabilities that cost nothing: granted even if not asked for.
inline constexpr std::uint64_t kAlways = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr std::uint64_t kSendCaps =
    kMessaging | FI_SEND | kMemory | FI_READ | FI_WRITE | FI_TRIGGER | FI_NAMED_RX_CTX;
inline constexpr std::uint64_t kReceiveCaps = kMessaging | FI_RECV | kMemory | FI_REMOTE_READ |
                                              FI_REMOTE_WRITE | FI_RMA_EVENT | FI_MULTI_RECV |
                                              FI_DIRECTED_RECV | FI_SOURCE | FI_TRIGGER;
inline constexpr std::uint64_t kAllCaps = kSendCaps | kReceiveCaps | kAlways;
// Messages of one endpoint to another match, and atomics take effect, in the order they were sent.
inline constexpr std::uint64_t kMessageOrder = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR |
                                               FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
                                               FI_ORDER_ATOMIC_WAW;
inline constexpr std::uint64_t kSendFlags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE |
                                            FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                            FI_MATCH_COMPLETE;
inline constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;

// Returns the capabilities of an endpoint that was asked to have these (0: all that exist).
std::uint64_t granted_caps(std::uint64_t asked);

// Returns why hints cannot be met, for the log; null if they can be.
const char* unmet(std::uint32_t version, const fi_info& hints);
const char* unmet(const fi_tx_attr& asked);
const char* unmet(const fi_rx_attr& asked);

// Fills in the limits and orders of contexts that were asked to have less.
void describe(fi_tx_attr& tx);
void describe(fi_rx_attr& rx);

}  // namespace pullman::ofi
