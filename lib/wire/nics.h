// The NICS frame: the NICs that an end has by now, told again while a connection lasts, and the
// rails that it decided on (wire.md 9.11).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.h"
#include "wire/hello.h"

namespace pullman::wire {

// A rail and its NICs: the sender's and the receiver's.
struct RailPlace {
  std::uint8_t rail = 0;  // never 0
  std::uint8_t mine = 0;
  std::uint8_t theirs = 0;
};

struct NicList {
  std::uint32_t count = 0;  // counts the sender's lists on this connection; the newest counts
  bool asks = false;        // the receiver is to tell its own
  bool no_ways = false;     // the sender has no rails, and sends no WAYS
  std::uint64_t host = 0;   // as in HELLO
  std::uint8_t nic_count = 0;
  std::uint8_t rail_count = 0;
  std::array<RailPlace, kMaxRails> rails{};
  std::array<NicInfo, kMaxNics> nics{};  // numbered as in HELLO; those that came later follow
};

// Bytes that put_nics() will write.
std::size_t nics_bytes(const NicList& list);
std::size_t put_nics(std::byte* out, const NicList& list);
// Nothing when the body is malformed.
std::optional<NicList> decode_nics(std::span<const std::byte> body);

// The count of a list that put_nics() wrote, with its frame's head, at the start of a packet's
// body; nothing if that begins with another frame.
std::optional<std::uint32_t> list_count(std::span<const std::byte> packet_body);

}  // namespace pullman::wire
