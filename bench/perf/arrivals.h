// What the receiver of a verified stream notes: which messages came, and when.
//
// Knows no messages but their numbers, and no clock: who calls says what time it is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "report.h"

namespace perf {

// Accounts for the numbers of messages: each is to come once, and in order.
class Roll {
 public:
  void note(std::uint64_t number);
  void note_corrupted() { ++corrupted_; }

  // Once `sent` messages have been sent and no more is coming. One that arrived corrupted counts as
  // lost, too: nobody knows which it was.
  std::uint64_t lost(std::uint64_t sent) const;
  std::uint64_t different() const { return different_; }
  std::uint64_t duplicated() const { return duplicated_; }
  std::uint64_t misordered() const { return misordered_; }
  std::uint64_t corrupted() const { return corrupted_; }

 private:
  // True if it was missing, and is no longer.
  bool found(std::uint64_t number);

  std::uint64_t next_ = 0;                          // the first number greater than all that came
  std::map<std::uint64_t, std::uint64_t> missing_;  // below it: first number, and one past the last
  std::uint64_t different_ = 0;
  std::uint64_t duplicated_ = 0;
  std::uint64_t misordered_ = 0;  // came after a later one
  std::uint64_t corrupted_ = 0;
};

// Goodput over time.
struct Bucket {
  std::uint64_t bytes = 0;
  std::uint32_t gap_us = 0;      // the longest pause between two messages that ended in it
  std::uint32_t gap_end_us = 0;  // since the bucket's begin
};
static_assert(sizeof(Bucket) == 16);  // as it travels

inline constexpr std::chrono::milliseconds kBucket{10};
inline constexpr std::size_t kMaxBuckets = std::size_t{1} << 20;  // almost three hours

class Buckets {
 public:
  explicit Buckets(Clock::time_point start) : start_(start) {}

  // `bytes` have arrived, all at once. What comes after kMaxBuckets is left out.
  void add(Clock::time_point now, std::uint64_t bytes);

  std::span<const Bucket> all() const { return buckets_; }

 private:
  Clock::time_point start_;
  Clock::time_point last_{};
  std::vector<Bucket> buckets_;
};

}  // namespace perf
