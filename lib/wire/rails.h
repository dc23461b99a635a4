// What two ends tell each other about their rails (wire.md 9): how NICs reach NICs, and which rails
// they have left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.h"
#include "wire/hello.h"

namespace pullman::wire {

// In place of a NIC: one that HELLO did not name.
inline constexpr std::uint8_t kUnnamedNic = 0xFF;

// For each of the sender's NICs and each of the receiver's, both as HELLO numbers them: 0 there is
// no way, 1 perhaps or through a gateway, 2 on the same link. And which of them the sender takes
// for rail 0.
struct Ways {
  std::uint8_t mine = 0;                                             // NICs of the sender
  std::uint8_t theirs = 0;                                           // and of the receiver
  std::uint8_t home = kUnnamedNic;                                   // of the sender
  std::uint8_t home_there = kUnnamedNic;                             // and of the receiver
  std::array<std::array<std::uint8_t, kMaxNics>, kMaxNics> reach{};  // [mine][theirs]
};
inline constexpr std::size_t kMaxWaysBytes = kWaysBytes + 4 + kMaxNics * kMaxNics;

std::size_t put_ways(std::byte* out, const Ways& ways);
// Nothing when the body is malformed.
std::optional<Ways> decode_ways(std::span<const std::byte> body);

enum class RailSaid : std::uint8_t {
  kUsed = 0,     // I use it, or try to
  kLeft = 1,     // I have left it: so should you
  kDrained = 2,  // my operator wants it left until he says otherwise
  kKeptOut = 3,  // it failed, and I leave it until I say otherwise
};
struct RailReport {
  std::uint8_t rail = 0;
  RailSaid said = RailSaid::kUsed;
  std::uint16_t count = 0;  // of the sender's statements about this rail; the newest counts
};

std::size_t put_rail(std::byte* out, const RailReport& report);
// Nothing if it names what there is not.
std::optional<RailReport> read_rail(const Frame& frame);

}  // namespace pullman::wire
