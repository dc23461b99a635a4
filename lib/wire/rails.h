// The frames by which two ends tell each other about rails (wire.md 9): WAYS, which NICs reach
// which, and RAIL, the rails they use or have left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.h"
#include "wire/hello.h"

namespace pullman::wire {

// In place of a NIC's number: a NIC that HELLO did not list.
inline constexpr std::uint8_t kUnnamedNic = 0xFF;

// How each NIC of the sender reaches each NIC of the receiver, both numbered as in HELLO: 0 not at
// all, 1 perhaps or through a gateway, 2 on the same link. And the NICs that the sender takes for
// rail 0.
struct Ways {
  std::uint8_t mine = 0;                  // number of NICs of the sender
  std::uint8_t theirs = 0;                // number of NICs of the receiver
  std::uint8_t home = kUnnamedNic;        // the sender's NIC of rail 0
  std::uint8_t home_there = kUnnamedNic;  // the receiver's NIC of rail 0
  std::array<std::array<std::uint8_t, kMaxNics>, kMaxNics> reach{};  // [mine][theirs]
};
inline constexpr std::size_t kMaxWaysBytes = kWaysBytes + 4 + kMaxNics * kMaxNics;

std::size_t put_ways(std::byte* out, const Ways& ways);
// Returns nothing if the body is malformed.
std::optional<Ways> decode_ways(std::span<const std::byte> body);

enum class RailSaid : std::uint8_t {
  kUsed = 0,     // the sender uses the rail, or tries to
  kLeft = 1,     // the sender has left it, and the receiver should leave it, too
  kDrained = 2,  // the sender's operator has drained it, until another report
  kKeptOut = 3,  // it failed, and the sender keeps it out, until another report
  kSilent = 4,   // as kLeft; it was silent while another rail answered
};
struct RailReport {
  std::uint8_t rail = 0;
  RailSaid said = RailSaid::kUsed;
  std::uint16_t count = 0;  // numbers the sender's reports on this rail; the newest is valid
};

std::size_t put_rail(std::byte* out, const RailReport& report);
// Returns nothing if the rail's number or its state is invalid.
std::optional<RailReport> read_rail(const Frame& frame);

}  // namespace pullman::wire
