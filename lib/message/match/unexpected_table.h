// Unexpected messages by source and tag, in the order of their turns; bits of the tag may be left
// out of the hash. It grows and shrinks with their number, a bucket at a time (linear hashing,
// Litwin 1980): no message waits while all are moved, and a find takes the same time among a
// million as among ten. Knows no receives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "message/match/unexpected.h"

namespace pullman::message {

class UnexpectedTable {
 public:
  UnexpectedTable() = default;
  UnexpectedTable(const UnexpectedTable&) = delete;
  UnexpectedTable& operator=(const UnexpectedTable&) = delete;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // No more than messages, or kMinBuckets.
  std::size_t buckets() const { return buckets_; }

  // Behind all others of its source and tag.
  void add(Unexpected& message) noexcept;
  void remove(Unexpected& message) noexcept;

  // The first of that source and tag, in all bits but those to ignore, which are not hashed; null:
  // there is none.
  Unexpected* find(PeerId source, Tag tag, Tag ignore) const {
    for (Unexpected* at = bucket_of(source, tag); at != nullptr; at = at->links.next) {
      if (((at->tag ^ tag) & ~ignore) == 0 && at->peer == source) return at;
    }
    return nullptr;
  }

  // Messages whose tags differ in these bits only are in one bucket from now on. `all` are those of
  // the table, in the order of their turns.
  template <typename InOrder>
  void leave_out_of_hash(Tag bits, InOrder& all) {
    unhashed_ = bits;
    for (std::size_t place = 0; place < buckets_; ++place) at(place) = nullptr;
    for (Unexpected& message : all) append(at(place_of(message.peer, message.tag)), message);
  }

  static constexpr std::size_t kMinBuckets = 1024;  // buckets

 private:
  using Bucket = Unexpected*;  // the first of its messages
  using Segment = std::array<Bucket, kMinBuckets>;

  // The product's high bytes, which depend on all of what it is of, come to be the low ones.
  std::size_t hash(PeerId source, Tag tag) const {
    const std::uint64_t mixed =
        ((tag & ~unhashed_) ^ (std::uint64_t{source.index} << 40)) * 0x9E3779B97F4A7C15u;
    return __builtin_bswap64(mixed);
  }
  // Those before `buckets_ - level_` are split: their messages are here or `level_` further on.
  std::size_t place_of(PeerId source, Tag tag) const {
    const std::size_t mixed = hash(source, tag);
    const std::size_t place = mixed & (2 * level_ - 1);
    return place < buckets_ ? place : mixed & (level_ - 1);
  }
  Bucket& at(std::size_t place) { return const_cast<Bucket&>(std::as_const(*this).at(place)); }
  const Bucket& at(std::size_t place) const {
    return place < kMinBuckets ? first_[place]
                               : more_[place / kMinBuckets - 1]->at(place % kMinBuckets);
  }
  Bucket bucket_of(PeerId source, Tag tag) const { return at(place_of(source, tag)); }
  static void append(Bucket& bucket, Unexpected& message);
  void grow() noexcept;
  void shrink() noexcept;

  Tag unhashed_ = 0;
  Segment first_{};
  std::vector<std::unique_ptr<Segment>> more_;  // behind the first
  std::size_t level_ = kMinBuckets;             // a power of two; level_ <= buckets_ < 2 level_
  std::size_t buckets_ = kMinBuckets;
  std::size_t size_ = 0;
};

}  // namespace pullman::message
