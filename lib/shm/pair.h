// What two processes share: memory with a ring each way, and what each end says of itself:
// whether it has joined, sleeps or has ended, which process it is, and whether it can read the
// other's memory.
//
// An end that is about to block says so, and looks once more before it blocks. The other end, when
// it has written or read a record, asks whether to wake it, and does that by a way of its own: the
// memory has none. It asks without a fence, which would cost as much as all the rest of a short
// record. So if both do that at one moment, neither may see what the other did, and an end that has
// said that it is about to block looks again when such a moment is over (kSettle).
//
// Threads: each end is used by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "shm/memory.h"
#include "shm/ring.h"

namespace pullman::shm {

class Pair {
 public:
  // Of each way. With both ways, and what both ends say, a pair takes less than 64 KiB.
  static constexpr std::size_t kCapacity = std::size_t{1} << 14;
  // Of the memory: for each end a line for what it says, and the ring that it writes.
  static constexpr std::size_t kEndBytes = kLineBytes + ring_bytes(kCapacity);
  static constexpr std::size_t kBytes = 2 * kEndBytes;
  // What one end stores the other sees much sooner than this.
  static constexpr std::chrono::microseconds kSettle{100};

  // The memory has kBytes. `creator`: it is new, and the other end will join it.
  Pair(std::unique_ptr<Memory> memory, bool creator);

  std::size_t max_record() const { return out_.max_record(); }
  RingWriter& out() { return out_; }
  RingReader& in() { return in_; }
  const RingWriter& out() const { return out_; }
  const RingReader& in() const { return in_; }
  // Returns the name that the other end is to join.
  const std::string& name() const { return memory_->name(); }
  void forget_name() { memory_->forget_name(); }
  // Returns whether the other end has it mapped.
  bool has_joined() const;

  // Says that this end is about to block. Returns true if it had not said so, or was woken since:
  // then it looks again after kSettle.
  bool set_sleeping();
  void clear_sleeping();
  // Returns true if an end that has said so must not block: there is a record already, or the other
  // end has ended.
  bool has_news();
  // Returns true if the other end sleeps and must be woken for what was written or read; once for
  // each time it sleeps.
  bool must_wake();

  // Says that this end writes and reads no more.
  void end();
  // Returns true if the other end has said so. What it wrote before can still be read.
  bool has_ended() const;

  // --- the other end's process, once it has joined

  // Makes its acquaintance: tries whether its memory can be read, and tells it. Called first.
  void meet();
  // Returns whether the other end can read this process's memory. Once it has said so, that stays:
  // records may rely on it, whatever the memory says later.
  bool is_read_there();
  // Copies bytes of its memory. Returns false if that is not possible.
  bool read(std::uint64_t address, std::span<std::byte> into) const;
  // Returns false once its end is known (pairs.h).
  bool is_alive_there() const { return memory_->is_alive(); }

 private:
  // What one end says, in a cache line of its own. `told` is written before `joined`.
  struct alignas(kLineBytes) Said {
    std::uint32_t sleeps;
    std::uint32_t ended;
    std::uint32_t joined;
    std::uint32_t reads;
    Told told;
  };
  static_assert(sizeof(Said) == kLineBytes);

  std::span<std::byte> part_of(bool creator) const;

  std::unique_ptr<Memory> memory_;
  Said* mine_;
  Said* theirs_;
  RingWriter out_;
  RingReader in_;
  bool read_there_ = false;  // the other end has said so
};

}  // namespace pullman::shm
