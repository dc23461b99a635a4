// The limits that the provider states in fi_info, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pullman::ofi {

inline constexpr std::size_t kMaxSegments = 16;    // in a scatter-gather list
inline constexpr std::size_t kInjectBytes = 1024;  // most that the inject calls copy
inline constexpr std::size_t kQueueSize = 4096;    // operations that an application should count on
// Outstanding operations of one endpoint. Only a program with a leak exceeds it.
inline constexpr std::size_t kMaxOperations = std::size_t{1} << 20;
// Contexts of one scalable endpoint, in each direction.
inline constexpr std::size_t kMaxContexts = 16;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 40;
inline constexpr std::size_t kDataBytes = 8;                     // of immediate data
inline constexpr std::uint64_t kTagFormat = 0xAAAAAAAAAAAAAAAA;  // all 64 bits are the user's

}  // namespace pullman::ofi
