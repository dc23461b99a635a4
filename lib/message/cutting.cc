#include "message/cutting.h"

#include <algorithm>

namespace pullman::message {
namespace {

// So many bytes sent twice by a run that is so long with them are less than another burst costs.
std::uint64_t most_waste(std::uint64_t bytes) {
  return bytes / 8;
}

// How long chunks should be, of `count` that carry so many bytes, to be of one length with little
// overlap: full ones; or shorter, if the last would lack too much.
std::uint64_t equal_chunk(std::uint64_t bytes, std::uint32_t count, std::uint64_t full) {
  if (full * count - bytes <= most_waste(full * count)) return full;
  const std::uint64_t each = (bytes + count - 1) / count;
  return each >= wire::kLeastChunk ? each : full;
}

}  // namespace

wire::Cut cut_up(std::uint64_t bytes, std::size_t most, std::uint64_t full, bool equal) {
  bytes = std::min<std::uint64_t>(bytes, full * most);
  const auto count = static_cast<std::uint32_t>((bytes + full - 1) / full);
  if (count == 0) return {};
  const std::uint64_t each = equal ? equal_chunk(bytes, count, full) : full;
  return {.count = count,
          .each = static_cast<std::uint32_t>(each),
          .last = static_cast<std::uint32_t>(bytes - each * (count - 1))};
}

void lengthen_last(wire::Cut& cut) {
  const std::uint32_t missing = cut.each - cut.last;
  if (missing > most_waste(std::uint64_t{cut.each} * cut.count)) return;
  cut.overlap = missing;
  cut.last = cut.each;
}

}  // namespace pullman::message
