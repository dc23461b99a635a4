#include "wire/rails.h"

#include <algorithm>

#include "wire/bytes.h"
#include "wire/header.h"

namespace pullman::wire {
namespace {

constexpr std::size_t kCountsBytes = 4;
constexpr std::uint8_t kMaxReach = 2;

}  // namespace

std::size_t put_ways(std::byte* out, const Ways& ways) {
  const std::size_t length = kCountsBytes + std::size_t{ways.mine} * ways.theirs;
  put_frame_head(out, FrameType::kWays, length);
  std::byte* at = out + kWaysBytes;
  store8(at++, ways.mine);
  store8(at++, ways.theirs);
  store8(at++, ways.home);
  store8(at++, ways.home_there);
  for (std::size_t i = 0; i < ways.mine; ++i) {
    for (std::size_t j = 0; j < ways.theirs; ++j) store8(at++, ways.reach[i][j]);
  }
  return kWaysBytes + length;
}

std::optional<Ways> decode_ways(std::span<const std::byte> body) {
  if (body.size() < kCountsBytes) return std::nullopt;
  Ways ways;
  ways.mine = load8(body.data());
  ways.theirs = load8(body.data() + 1);
  ways.home = load8(body.data() + 2);
  ways.home_there = load8(body.data() + 3);
  if (ways.mine > kMaxNics || ways.theirs > kMaxNics) return std::nullopt;
  if (body.size() != kCountsBytes + std::size_t{ways.mine} * ways.theirs) return std::nullopt;
  const std::byte* at = body.data() + kCountsBytes;
  for (std::size_t i = 0; i < ways.mine; ++i) {
    for (std::size_t j = 0; j < ways.theirs; ++j) {
      ways.reach[i][j] = load8(at++);
      if (ways.reach[i][j] > kMaxReach) return std::nullopt;
    }
  }
  return ways;
}

std::size_t put_rail(std::byte* out, const RailReport& report) {
  put_frame_head(out, FrameType::kRail, 0);
  store8(out + 4, report.rail);
  store8(out + 5, static_cast<std::uint8_t>(report.said));
  store16(out + 6, report.count);
  return kRailBytes;
}

std::optional<RailReport> read_rail(const Frame& frame) {
  const auto rail = static_cast<std::uint8_t>(frame.limit >> 8);
  const auto said = static_cast<std::uint8_t>(frame.limit & 0xFF);
  if (rail >= kMaxRails || said > static_cast<std::uint8_t>(RailSaid::kSilent)) {
    return std::nullopt;
  }
  return RailReport{rail, static_cast<RailSaid>(said), static_cast<std::uint16_t>(frame.id)};
}

}  // namespace pullman::wire
