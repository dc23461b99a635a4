// Decides when a thread that polls and finds nothing yields the processor. Some applications spin
// on a queue (Open MPI's MTL in a blocking send) for another process on the same processor, which
// otherwise would run only after a time slice: 4 ms for an ACK.
#pragma once

namespace pullman::ofi {

class YieldPolicy {
 public:
  explicit YieldPolicy(bool wanted) : wanted_(wanted) {}

  // Whether to yield now. A poll takes about a microsecond, a yield without effect a fifth of that.
  bool due(bool found_nothing) {
    empty_polls_ = found_nothing ? empty_polls_ + 1 : 0;
    return wanted_ && empty_polls_ >= kPatience && empty_polls_ % kEvery == 0;
  }

 private:
  static constexpr unsigned kPatience = 64;
  static constexpr unsigned kEvery = 8;

  // Off where unrelated programs compute on the same processors: they would keep it for a time
  // slice.
  const bool wanted_;
  unsigned empty_polls_ = 0;  // consecutive ones
};

}  // namespace pullman::ofi
