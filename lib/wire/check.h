// The connectivity check (wire.md 9.8): finds out whether packets of some length pass over a rail,
// in each direction. Each frame is alone in a packet of type kCheck, which has no number and is
// never acknowledged. Padding gives the packet its length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/frame.h"
#include "wire/header.h"
#include "wire/hello.h"

namespace pullman::wire {

enum class CheckSize : std::uint8_t {
  kSmallest = 0,  // a packet of the command channel without padding
  kLargest = 1,   // the longest that the data channels of both NICs take
};
inline constexpr std::size_t kCheckSizes = 2;

// A bit for each rail.
using RailBits = std::uint8_t;
static_assert(kMaxRails == 8 * sizeof(RailBits));
using RailsBySize = std::array<RailBits, kCheckSizes>;

// Identifies one round of checks. The count tells late packets from new ones; the token, which
// cannot be guessed, tells forged packets from real ones.
struct CheckRound {
  std::uint16_t count = 0;
  std::uint64_t token = 0;
  bool operator==(const CheckRound&) const = default;
};

struct Check {
  CheckRound round;
  CheckSize size = CheckSize::kSmallest;
  std::uint64_t epoch = 0;  // of the receiver; an engine of another epoch is the wrong host
  WireAddress called;       // the receiver's command channel on this rail, as the sender knows it
  WireAddress reply_to;     // the sender's command channel, for an unknown-peer reply
};

struct Checked {
  CheckRound round;
  CheckSize size = CheckSize::kSmallest;
  bool unknown_peer = false;  // an unknown-peer reply: the sender has another epoch than was asked
  std::uint64_t epoch = 0;  // of an unknown-peer reply: the epoch that was asked; no field follows
  RailsBySize arrived{};    // the rails on which CHECKs of this round arrived, by size
  RailBits elsewhere = 0;   // of those, the ones that arrived by another NIC than they were sent to
};

inline constexpr std::size_t kCheckFixedBytes = 20;
inline constexpr std::size_t kCheckedBytes = kCheckHeadBytes + 15;
inline constexpr std::size_t kUnknownPeerReplyBytes = kCheckHeadBytes + 20;

// Returns the length of the shortest CHECK frame with these addresses.
std::size_t least_check_bytes(const WireAddress& called, const WireAddress& reply_to);

// Write a frame that fills `out`, padding included. `out` has room for the shortest one.
void put_check(std::span<std::byte> out, const Check& check);
void put_checked(std::span<std::byte> out, const Checked& checked);

// Return nothing if the body is malformed.
std::optional<Check> decode_check(std::span<const std::byte> body);
std::optional<Checked> decode_checked(std::span<const std::byte> body);

}  // namespace pullman::wire
