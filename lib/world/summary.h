// What a process of a world says of itself when it is asked (side_channel.h): in few bytes, what it
// waits for and since when. Times are ages, since hosts have clocks of their own.
//
// All of it is bounded, and what comes from elsewhere is not trusted: decode() takes only what
// encode() could have written.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "context/service.h"
#include "world/bytes.h"

namespace pullman::world {

using Age = std::chrono::nanoseconds;
// In place of the rank of a peer that is not known as a process of the world.
inline constexpr std::uint32_t kNoRank = 0xFFFFFFFF;

// The words for what a receive that names a peer waits for; the others are in telemetry/rows.h.
inline constexpr std::string_view kWaitsForMessage = "its message";

// In place of them, how a peer has ended: this, and why.
inline constexpr std::string_view kGone = "gone: ";

// A peer that something waits for, or one that has ended.
struct WaitedFor {
  std::uint32_t rank = kNoRank;
  std::string address{};
  std::string what{};  // telemetry::waits, or kWaitsForMessage
  Age since{};         // for so long nothing has gone on
  Age heard{};         // so long ago a packet of it came; 0: never
};

// A rail to a peer that something waits for, or one that is not up.
struct RailSummary {
  std::uint32_t rank = kNoRank;
  std::string nic{};  // ours
  std::string remote{};
  std::string state{};
  std::string reason{};
  Age since{};  // in that state; 0: not known
  Age rtt{};
  std::uint64_t lost = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t in_flight = 0;
};

// A call of the world that all processes make.
struct CollectiveCall {
  std::string name{};
  std::uint32_t rank = kNoRank;  // the process that it waits for
  Age since{};
};

struct Summary {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint64_t process = 0;
  std::string host{};
  bool has_thread = false;           // a thread makes progress while the program does not
  std::optional<Age> in_call{};      // a call of the program waits for so long
  std::optional<Age> program_ago{};  // so long ago the program called; nothing: never
  std::optional<CollectiveCall> collective{};
  std::uint64_t receives_posted = 0;
  std::uint64_t peers_waited_for = 0;  // also those that are not named below
  std::vector<WaitedFor> waits{};      // the longest; behind them those that have ended
  std::vector<RailSummary> rails{};
  std::uint64_t warnings = 0;
  std::string warning{};  // the last one
};

inline constexpr std::size_t kMaxWaits = 16;
inline constexpr std::size_t kMaxRails = 16;
// The longest that encode() writes.
inline constexpr std::size_t kMaxSummaryBytes = 8192;

Bytes encode(const Summary& summary);
std::optional<Summary> decode_summary(std::span<const std::byte> bytes);

// Returns the rank of a peer as its row names it, or kNoRank.
using RankOf = std::function<std::uint32_t(std::uint64_t index, std::uint64_t generation)>;
// Fills in what a context's rows and the program's activity say. Pure.
void describe(const telemetry::Rows& rows, const Context::Service::Activity& activity,
              const RankOf& rank_of, Summary& out);

}  // namespace pullman::world
