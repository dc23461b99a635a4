// The connectivity check (wire.md 9.8): does a packet of that length get there over that rail, and
// back? Each frame stands alone in a packet of type kCheck, which has no number and is never
// acknowledged; it is as long as its sender pads it.
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
  kSmallest = 0,  // a packet of the command channel with nothing to spare
  kLargest = 1,   // the longest that the data channels of both NICs take
};
inline constexpr std::size_t kCheckSizes = 2;

// Of one size, a bit for each rail.
using RailBits = std::uint8_t;
static_assert(kMaxRails == 8 * sizeof(RailBits));
using RailsBySize = std::array<RailBits, kCheckSizes>;

// Names one round of questions. The count tells late ones from new ones, the token, which nobody
// else can guess, those from forged ones.
struct CheckRound {
  std::uint16_t count = 0;
  std::uint64_t token = 0;
  bool operator==(const CheckRound&) const = default;
};

struct Check {
  CheckRound round;
  CheckSize size = CheckSize::kSmallest;
  std::uint64_t epoch = 0;  // of the engine that is asked; another one is the wrong host
  WireAddress called;       // its command channel on this rail, as the asker knows it
  WireAddress reply_to;     // where the wrong one may say so: the asker's command channel
};

struct Checked {
  CheckRound round;
  CheckSize size = CheckSize::kSmallest;
  bool stranger = false;    // the sender is not the one that was asked; `arrived` means nothing,
  std::uint64_t epoch = 0;  // and this is the epoch it was asked for
  RailsBySize arrived{};    // what has come of this round, of each size
  RailBits elsewhere = 0;   // of that, what came by another NIC than the one it was sent to
};

inline constexpr std::size_t kCheckFixedBytes = 20;
inline constexpr std::size_t kCheckedBytes = kCheckHeadBytes + 15;
inline constexpr std::size_t kDenialBytes = kCheckHeadBytes + 20;  // of a stranger

// Of the shortest CHECK frame that says these addresses.
std::size_t least_check_bytes(const WireAddress& called, const WireAddress& reply_to);

// The frame fills `out`, which has room for the shortest: what is left of it is padding.
void put_check(std::span<std::byte> out, const Check& check);
void put_checked(std::span<std::byte> out, const Checked& checked);

// Nothing when the body is malformed.
std::optional<Check> decode_check(std::span<const std::byte> body);
std::optional<Checked> decode_checked(std::span<const std::byte> body);

}  // namespace pullman::wire
