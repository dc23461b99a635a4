// The body of a HELLO frame: what two processes tell each other in the handshake (wire.md 5). HELLO
// and WELCOME packets contain the same frame.
//
// Addresses are encoded as {kind, bytes}: this layer does not know what they mean to a NIC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/header.h"

namespace pullman::wire {

inline constexpr std::size_t kMaxAddressBytes = 56;
inline constexpr std::size_t kMaxNics = 8;
inline constexpr std::size_t kHelloFixedBytes = 60;
inline constexpr std::size_t kNicFixedBytes = 12;
// The longest body, without padding.
inline constexpr std::size_t kMaxHelloBytes =
    kHelloFixedBytes + 2 + kMaxAddressBytes +
    kMaxNics * (kNicFixedBytes + 2 * (2 + kMaxAddressBytes));

// The address of a NIC's port. kind: 4 = IPv4 (4 address bytes, then the port), 6 = IPv6 (16, port,
// 4-byte scope), 255 = opaque bytes of the fabric (wire.md 5.3). kRelayedKind is added to 4 or 6
// for an address that the relay reaches.
inline constexpr std::uint8_t kRelayedKind = 0x80;
struct WireAddress {
  std::uint8_t kind = 0;
  std::uint8_t length = 0;
  std::array<std::byte, kMaxAddressBytes> bytes{};
  bool operator==(const WireAddress& other) const;
};

// put_address() writes wire_bytes() bytes and returns their end.
std::size_t wire_bytes(const WireAddress& address);
std::byte* put_address(std::byte* out, const WireAddress& address);
// Removes an address from the front of `in`; returns false if there is none (wire.md 5.3).
bool take_address(std::span<const std::byte>& in, WireAddress& out);

// One address of one NIC of the sender (wire.md 5.2).
struct NicInfo {
  std::uint16_t command_packet_bytes = 0;  // largest packet its command channel receives
  std::uint16_t data_packet_bytes = 0;     // largest packet its data channel receives
  std::uint32_t mbps = 0;                  // link speed, 10^6 bit/s; 0 unknown
  std::uint8_t device = 0;                 // the same for all addresses of one NIC
  std::uint8_t distance = 0;  // of the NIC from the process, as the sender computes it; 0: near
  bool stream = false;        // carries packets in a byte stream: the last resort
  WireAddress command;
  WireAddress data;
};

struct Hello {
  std::uint64_t epoch = 0;          // names one incarnation of one process
  ConnectionId reply_to;            // how to address packets to the sender
  std::uint64_t first_number = 0;   // the first packet number the sender uses on this link
  std::uint64_t first_message = 0;  // the first message id it uses
  std::uint64_t allowance = 0;      // the receiver's initial allowance of unexpected memory, bytes
  std::uint32_t eager_bytes = 0;    // of one message, which may be sent before a grant
  std::uint16_t credit = 0;         // packets that the sender of this can hold unread
  std::uint8_t nic = 0;             // which of `nics` the first rail uses
  std::uint8_t nic_count = 0;
  std::uint16_t call = 0;  // counts the pairs of NICs tried; a WELCOME repeats the HELLO's
  std::uint64_t host = 0;  // identifies the sender's host; equal for all its processes; 0 unknown
  WireAddress called;      // the destination: a HELLO that arrives elsewhere is refused
  std::array<NicInfo, kMaxNics> nics{};
};

// The same three functions as for an address, for a NIC.
std::size_t wire_bytes(const NicInfo& nic);
std::byte* put_nic(std::byte* out, const NicInfo& nic);
bool take_nic(std::span<const std::byte>& in, NicInfo& out);

// Returns true if there is more than one NIC, or a stream beside one. Several addresses of one NIC
// do not count.
bool several_nics(std::span<const NicInfo> nics);

// Returns the number of bytes that encode() will write.
std::size_t encoded_bytes(const Hello& hello);

// `out` has room for encoded_bytes(hello).
void encode(const Hello& hello, std::byte* out);

// Returns nothing if the body is malformed (wrong length, counts or ranges). Zero bytes may follow
// as padding.
std::optional<Hello> decode_hello(std::span<const std::byte> body);

}  // namespace pullman::wire
