// Remembers which bytes of one message have arrived: exact under any order, duplication and
// overlap.
//
// Holds a prefix and a short sorted list of ranges beyond it; bytes in order cost no memory. It is
// not a bitmap of chunks, because rails of different packet sizes cut the same message differently.
// The user bounds it: a range that would need one entry too many is refused, as if its packet had
// been lost. Takes memory for that many entries at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace pullman::message {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // one past the last byte
};

class RangeSet {
 public:
  enum class Added : std::uint8_t {
    kNew,        // at least one byte had not arrived before
    kRedundant,  // all bytes had arrived before
    kRefused,    // too many gaps: nothing was remembered
  };
  // The worst case: every other one of the 4096 packets that may be in flight is missing.
  static constexpr std::size_t kMaxRanges = 2048;

  explicit RangeSet(std::pmr::memory_resource* memory) : beyond_(memory) {}

  // Adds a range; remembers at most `most` ranges beyond the prefix.
  Added add(Range range, std::size_t most = kMaxRanges);

  // Bytes [0, prefix()) have all arrived.
  std::uint64_t prefix() const { return prefix_; }

  // Whether nothing beyond the prefix has arrived.
  bool in_order() const { return beyond_.empty(); }

  // Calls visit(Range) for every maximal range that has arrived, in order.
  template <typename Visit>
  void for_each(Visit visit) const {
    if (prefix_ > 0) visit(Range{0, prefix_});
    for (const Range& range : beyond_) visit(range);
  }

 private:
  Added insert(Range range, std::size_t most);

  std::uint64_t prefix_ = 0;
  std::pmr::vector<Range> beyond_;  // sorted, disjoint, not touching each other nor the prefix
};

}  // namespace pullman::message
