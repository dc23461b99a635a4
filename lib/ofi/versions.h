// The differences between the versions of libfabric that this compiles with, 1.17 to 2. Flags that
// later versions have dropped or deprecated are defined by value: older programs still use them.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

namespace pullman::ofi {

inline constexpr std::uint64_t kPriority = std::uint64_t{1} << 22;  // FI_PRIORITY
inline constexpr int kBasicRegistration = 1 << 0;                   // FI_MR_BASIC
inline constexpr int kScalableRegistration = 1 << 1;                // FI_MR_SCALABLE
inline constexpr std::uint64_t kNoOrder = 0;                        // FI_ORDER_NONE

#ifdef FI_PRIORITY
static_assert(kPriority == FI_PRIORITY);
#endif
#if FI_MAJOR_VERSION == 1
static_assert(kBasicRegistration == FI_MR_BASIC);
static_assert(kScalableRegistration == FI_MR_SCALABLE);
static_assert(kNoOrder == FI_ORDER_NONE);
#endif

}  // namespace pullman::ofi
