// The NICS frame: the current NICs of an end, announced again during a connection, and the rails
// that the end decided on (wire.md 9.11).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.h"
#include "wire/hello.h"

namespace pullman::wire {

// A rail, its NIC at the sender and its NIC at the receiver.
struct RailPlace {
  std::uint8_t rail = 0;  // never 0
  std::uint8_t mine = 0;
  std::uint8_t theirs = 0;
};

struct NicList {
  std::uint32_t count = 0;  // numbers the sender's lists on this connection; the newest is valid
  bool asks = false;        // the receiver shall send its own list
  bool no_ways = false;     // the sender has no rails yet, and sends no WAYS
  std::uint64_t host = 0;   // as in HELLO
  std::uint8_t nic_count = 0;
  std::uint8_t rail_count = 0;
  std::array<RailPlace, kMaxRails> rails{};
  std::array<NicInfo, kMaxNics> nics{};  // numbered as in HELLO; NICs that came later follow
};

// Returns the number of bytes that put_nics() will write.
std::size_t nics_bytes(const NicList& list);
std::size_t put_nics(std::byte* out, const NicList& list);
// Returns nothing if the body is malformed.
std::optional<NicList> decode_nics(std::span<const std::byte> body);

// Returns the count of the NICS frame at the start of a packet's body, or nothing if the body
// begins with another frame.
std::optional<std::uint32_t> list_count(std::span<const std::byte> packet_body);

}  // namespace pullman::wire
