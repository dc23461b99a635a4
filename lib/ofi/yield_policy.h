// When a thread that polls and finds nothing yields the processor. Some applications spin on a
// queue (Open MPI's MTL in a blocking send), and what they wait for may be another process on the
// same processor, which would run after a time slice only: 4 ms for an ACK.
#pragma once

namespace pullman::ofi {

class YieldPolicy {
 public:
  explicit YieldPolicy(bool wanted) : wanted_(wanted) {}

  // Whether to yield now. A poll takes about a microsecond, a yield to nobody a fifth of one.
  bool due(bool found_nothing) {
    empty_polls_ = found_nothing ? empty_polls_ + 1 : 0;
    return wanted_ && empty_polls_ >= kPatience && empty_polls_ % kEvery == 0;
  }

 private:
  static constexpr unsigned kPatience = 64;
  static constexpr unsigned kEvery = 8;

  // Not where unrelated programs compute on the same processors: they keep it for a slice.
  const bool wanted_;
  unsigned empty_polls_ = 0;  // in a row
};

}  // namespace pullman::ofi
