// The format of datagrams in a byte stream, in both directions.
//
// Each end first sends its preamble, once: "PULT", the version (1), a zero, and its listening port
// (2 bytes, most significant first). Then datagrams follow, each behind its length (2 bytes, same
// order; 1 to kMaxPacketBytes). Anything else is invalid, and ends the stream.
//
// Pure: knows no sockets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace pullman::nic::tcp {

inline constexpr std::size_t kLengthBytes = 2;
// With its length field it has as many bytes as eight pages.
inline constexpr std::size_t kMaxPacketBytes = 32 * 1024 - kLengthBytes;
inline constexpr std::size_t kPreambleBytes = 8;

using Preamble = std::array<std::byte, kPreambleBytes>;
Preamble make_preamble(std::uint16_t listening_port);

// Returns the port in a preamble of kPreambleBytes bytes; nothing if it is invalid.
std::optional<std::uint16_t> read_preamble(std::span<const std::byte> bytes);

using Length = std::array<std::byte, kLengthBytes>;
inline Length make_length(std::size_t bytes) {
  return {static_cast<std::byte>(bytes >> 8), static_cast<std::byte>(bytes)};
}

// What follows in a stream.
enum class Next : std::uint8_t {
  kDatagram,    // a datagram, which was taken
  kUnfinished,  // more bytes must come first
  kNonsense,    // not a valid length
};

// Takes the next datagram, which is never empty, from the bytes behind the preamble.
inline Next take_datagram(std::span<const std::byte>& stream,
                          std::span<const std::byte>& datagram) {
  if (stream.size() < kLengthBytes) return Next::kUnfinished;
  const auto length =
      std::to_integer<std::size_t>(stream[0]) << 8 | std::to_integer<std::size_t>(stream[1]);
  if (length == 0 || length > kMaxPacketBytes) [[unlikely]]
    return Next::kNonsense;
  if (stream.size() - kLengthBytes < length) return Next::kUnfinished;
  datagram = stream.subspan(kLengthBytes, length);
  stream = stream.subspan(kLengthBytes + length);
  return Next::kDatagram;
}

}  // namespace pullman::nic::tcp
