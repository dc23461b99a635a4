// Loads and stores in network byte order at unaligned addresses (wire.md 1.1). Only lib/wire
// includes this.
#pragma once

#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>

namespace pullman::wire {

inline const unsigned char* raw(const std::byte* at) {
  return reinterpret_cast<const unsigned char*>(at);
}
inline unsigned char* raw(std::byte* at) {
  return reinterpret_cast<unsigned char*>(at);
}

inline std::uint8_t load8(const std::byte* at) {
  return static_cast<std::uint8_t>(*at);
}
inline std::uint16_t load16(const std::byte* at) {
  return boost::endian::load_big_u16(raw(at));
}
inline std::uint32_t load32(const std::byte* at) {
  return boost::endian::load_big_u32(raw(at));
}
inline std::uint64_t load64(const std::byte* at) {
  return boost::endian::load_big_u64(raw(at));
}

inline void store8(std::byte* at, std::uint8_t value) {
  *at = static_cast<std::byte>(value);
}
inline void store16(std::byte* at, std::uint16_t value) {
  boost::endian::store_big_u16(raw(at), value);
}
inline void store32(std::byte* at, std::uint32_t value) {
  boost::endian::store_big_u32(raw(at), value);
}
inline void store64(std::byte* at, std::uint64_t value) {
  boost::endian::store_big_u64(raw(at), value);
}

}  // namespace pullman::wire
