// The limits that the provider states in fi_info, in one place.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pullman::ofi {

inline constexpr std::size_t kMaxSegments = 16;    // of a scatter-gather list
inline constexpr std::size_t kInjectBytes = 1024;  // copied by the inject calls
inline constexpr std::size_t kQueueSize = 4096;    // operations an application should count on
// Outstanding operations of one endpoint: only a program that has lost count has more.
inline constexpr std::size_t kMaxOperations = std::size_t{1} << 20;
// Of one scalable endpoint, in each direction.
inline constexpr std::size_t kMaxContexts = 16;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 40;
inline constexpr std::size_t kDataBytes = 8;                     // of immediate data
inline constexpr std::uint64_t kTagFormat = 0xAAAAAAAAAAAAAAAA;  // all 64 bits are the user's

}  // namespace pullman::ofi
