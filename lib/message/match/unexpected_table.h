// Unexpected messages by source and tag, in the order of their turns; bits of the tag may be left
// out of the hash. It grows and shrinks with their number, one bucket at a time (linear hashing,
// Litwin 1980): so no message has to wait for a rehash, and find() takes as long among a million as
// among ten. Knows no receives.
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
  // At most the number of messages, or kMinBuckets.
  std::size_t buckets() const { return buckets_; }

  // Adds it behind all others of its source and tag.
  void add(Unexpected& message) noexcept;
  void remove(Unexpected& message) noexcept;

  // Returns the first message of that source and tag, or null. Compares all bits of the tag but
  // `ignore`, which must be left out of the hash.
  Unexpected* find(PeerId source, Tag tag, Tag ignore) const {
    for (Unexpected* at = bucket_of(source, tag); at != nullptr; at = at->links.next) {
      if (((at->tag ^ tag) & ~ignore) == 0 && at->peer == source) return at;
    }
    return nullptr;
  }

  // Puts messages whose tags differ only in these bits into one bucket from now on. `all` holds the
  // table's messages in the order of their turns.
  template <typename InOrder>
  void leave_out_of_hash(Tag bits, InOrder& all) {
    unhashed_ = bits;
    for (std::size_t place = 0; place < buckets_; ++place) at(place) = nullptr;
    for (Unexpected& message : all) append(at(place_of(message.peer, message.tag)), message);
  }

  static constexpr std::size_t kMinBuckets = 1024;  // buckets

 private:
  using Bucket = Unexpected*;  // its first message
  using Segment = std::array<Bucket, kMinBuckets>;

  // Reverses the bytes, because the product's high bytes depend on all input bits and the low bits
  // select the bucket.
  std::size_t hash(PeerId source, Tag tag) const {
    const std::uint64_t mixed =
        ((tag & ~unhashed_) ^ (std::uint64_t{source.index} << 40)) * 0x9E3779B97F4A7C15u;
    return __builtin_bswap64(mixed);
  }
  // Buckets before `buckets_ - level_` are split: their messages are there or `level_` further on.
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
  std::vector<std::unique_ptr<Segment>> more_;  // buckets behind `first_`
  std::size_t level_ = kMinBuckets;             // a power of two; level_ <= buckets_ < 2 level_
  std::size_t buckets_ = kMinBuckets;
  std::size_t size_ = 0;
};

}  // namespace pullman::message
