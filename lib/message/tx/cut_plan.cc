#include "message/tx/cut_plan.h"

#include <algorithm>

namespace pullman::message {
namespace {

// How long chunks should be, of `count` that carry so many bytes, to be of one length with little
// overlap: full ones; or shorter, if the last would lack too much.
std::uint64_t equal_chunk(std::uint64_t bytes, std::uint32_t count, const Wanted& wanted) {
  if (wanted.full * count - bytes <= wanted.waste) return wanted.full;
  const std::uint64_t each = (bytes + count - 1) / count;
  return each >= wire::kLeastChunk ? each : wanted.full;
}

}  // namespace

wire::Cut cut_up(std::uint64_t bytes, const Wanted& wanted) {
  bytes = std::min<std::uint64_t>(bytes, wanted.full * wanted.most);
  const auto count = static_cast<std::uint32_t>((bytes + wanted.full - 1) / wanted.full);
  if (count == 0) return {};
  const std::uint64_t each = wanted.equal ? equal_chunk(bytes, count, wanted) : wanted.full;
  return {.count = count,
          .each = static_cast<std::uint32_t>(each),
          .last = static_cast<std::uint32_t>(bytes - each * (count - 1))};
}

bool changes_length(const wire::Cut& cut, std::uint64_t bytes, const Wanted& wanted) {
  const auto whole = static_cast<std::uint32_t>((bytes + wanted.full - 1) / wanted.full);
  return cut.count < whole && wanted.equal && cut.each != equal_chunk(bytes, whole, wanted);
}

void lengthen_last(wire::Cut& cut, std::uint64_t waste) {
  const std::uint32_t missing = cut.each - cut.last;
  if (missing > waste) return;
  cut.overlap = missing;
  cut.last = cut.each;
}

}  // namespace pullman::message
