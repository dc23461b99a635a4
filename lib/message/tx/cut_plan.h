// Plans how bytes of a message are cut into the chunks of a run. Where packets of equal length are
// cheaper to send they get equal lengths, as far as that costs few bytes (decision 0004). Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/frame.h"

namespace pullman::message {

// Returns how many bytes of a message of `granted` bytes may be sent twice to make lengths equal:
// fewer than another burst costs. Only the end of what is granted can be too short.
constexpr std::uint64_t max_waste(std::uint64_t granted) {
  return granted / 8;
}

struct CutLimits {
  std::size_t max_chunks = 0;
  std::uint64_t full = 0;       // bytes of the longest chunk
  bool equal = false;           // chunks get about equal lengths
  std::uint64_t max_waste = 0;  // bytes that may be sent twice for that
};
wire::Cut plan_cut(std::uint64_t bytes, const CutLimits& limits);

// Whether the cut leaves some of the bytes, and its length differs from that of a cut of all bytes.
bool changes_length(const wire::Cut& cut, std::uint64_t bytes, const CutLimits& limits);

// Makes the last chunk as long as the others, unless it lacks more than `max_waste` bytes: then it
// begins before its predecessor ends.
void lengthen_last(wire::Cut& cut, std::uint64_t max_waste);

}  // namespace pullman::message
