#include "message/tx/cut_plan.h"

#include <algorithm>

namespace pullman::message {
namespace {

// Returns the length of `count` chunks of equal length that carry that many bytes with little
// overlap: the full length, or a shorter one if the last chunk would lack too much.
std::uint64_t equal_chunk(std::uint64_t bytes, std::uint32_t count, const CutLimits& limits) {
  if (limits.full * count - bytes <= limits.max_waste) return limits.full;
  const std::uint64_t each = (bytes + count - 1) / count;
  return each >= wire::kLeastChunk ? each : limits.full;
}

}  // namespace

wire::Cut plan_cut(std::uint64_t bytes, const CutLimits& limits) {
  bytes = std::min<std::uint64_t>(bytes, limits.full * limits.max_chunks);
  const auto count = static_cast<std::uint32_t>((bytes + limits.full - 1) / limits.full);
  if (count == 0) return {};
  const std::uint64_t each = limits.equal ? equal_chunk(bytes, count, limits) : limits.full;
  return {.count = count,
          .each = static_cast<std::uint32_t>(each),
          .last = static_cast<std::uint32_t>(bytes - each * (count - 1))};
}

bool changes_length(const wire::Cut& cut, std::uint64_t bytes, const CutLimits& limits) {
  const auto whole = static_cast<std::uint32_t>((bytes + limits.full - 1) / limits.full);
  return cut.count < whole && limits.equal && cut.each != equal_chunk(bytes, whole, limits);
}

void lengthen_last(wire::Cut& cut, std::uint64_t max_waste) {
  const std::uint32_t missing = cut.each - cut.last;
  if (missing > max_waste) return;
  cut.overlap = missing;
  cut.last = cut.each;
}

}  // namespace pullman::message
