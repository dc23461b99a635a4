// How bytes of a message are cut into the chunks of a run. Where packets of one length are cheap
// they are of one length, as far as that costs few bytes more (decision 0004). Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/frame.h"

namespace pullman::message {

// Bytes of a message of `granted` that may be sent twice for the sake of one length: fewer than
// another burst costs. Only the end of what is granted can lack some.
constexpr std::uint64_t max_waste(std::uint64_t granted) {
  return granted / 8;
}

struct CutLimits {
  std::size_t max_chunks = 0;
  std::uint64_t full = 0;       // bytes of the longest chunk
  bool equal = false;           // chunks are of about one length
  std::uint64_t max_waste = 0;  // bytes that may be sent twice for that
};
wire::Cut plan_cut(std::uint64_t bytes, const CutLimits& limits);

// Not all of those bytes are cut, and those that are would have another length than where all are.
bool changes_length(const wire::Cut& cut, std::uint64_t bytes, const CutLimits& limits);

// The last chunk is to be as long as the others, if it does not lack too much: then it begins
// before the one before it ends.
void lengthen_last(wire::Cut& cut, std::uint64_t max_waste);

}  // namespace pullman::message
