// What two processes share: a segment with a ring each way, and whether each end sleeps or has
// ended.
//
// An end that is about to block says so, and looks once more before it blocks. The other end, when
// it has written a record, asks whether to wake it, and does that by a way of its own: the memory
// has none. Both are in sequentially consistent order, so one of them sees what the other did.
//
// Threads: each end is used by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "shm/ring.h"
#include "shm/segment.h"

namespace pullman::shm {

class Pair {
 public:
  // Of each way. With both ways, and what both ends say, a pair takes less than 64 KiB.
  static constexpr std::size_t kCapacity = std::size_t{1} << 14;

  // Throw SegmentError.
  static Pair create(const Secret& secret, const std::filesystem::path& folder = kFolder);
  static Pair join(std::string_view name, const Secret& secret,
                   const std::filesystem::path& folder = kFolder);

  std::size_t max_record() const { return out_.max_record(); }
  RingWriter& out() { return out_; }
  RingReader& in() { return in_; }
  // Returns the name that the other end is to join. Removes it once that has joined.
  const std::string& name() const { return segment_.name(); }
  void forget_name() { segment_.unlink(); }

  // Says that this end is about to block, or does not any more. When set_sleeping(true) returns
  // true there is a record already, and it must not block.
  bool set_sleeping(bool sleeps);
  // Returns true if the other end sleeps and must be woken for what was written; once for each time
  // it sleeps.
  bool must_wake();

  // Says that this end writes and reads no more.
  void end();
  // Returns true if the other end has said so. What it wrote before can still be read.
  bool has_ended() const;

 private:
  // What one end says, in a cache line of its own.
  struct alignas(kLineBytes) Said {
    std::uint32_t sleeps;
    std::uint32_t ended;
  };

  Pair(Segment segment, bool creator);

  Segment segment_;
  Said* mine_;
  Said* theirs_;
  RingWriter out_;
  RingReader in_;
};

}  // namespace pullman::shm
