#include "shm/ring.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pullman::shm {
namespace {

constexpr std::uint32_t kSkip = ~std::uint32_t{0};
constexpr std::uint32_t kMarked = std::uint32_t{1} << 31;

constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + 7) & ~std::uint64_t{7};
}

// A header names its position, so that bytes of an earlier record are not taken for one.
constexpr std::uint64_t head_of(std::uint32_t length, bool marked, std::uint64_t position) {
  return position >> 3 << 32 | (length + 1) | (marked ? kMarked : 0);
}
constexpr std::uint64_t skip_head(std::uint64_t position) {
  return position >> 3 << 32 | kSkip;
}

}  // namespace

RingMemory::RingMemory(std::span<std::byte> memory)
    : read_(reinterpret_cast<std::uint64_t*>(memory.data())),
      bytes_(memory.data() + kLineBytes),
      mask_(memory.size() - kLineBytes - 1) {
  PULLMAN_CHECK(memory.size() > kLineBytes && std::has_single_bit(mask_ + 1));
  PULLMAN_CHECK(reinterpret_cast<std::uintptr_t>(read_) % kLineBytes == 0);
}

// Behind each record there must be room for the header that says that there is no other.
bool RingWriter::has_room(std::uint64_t end) {
  if (end + kRecordHeadBytes <= free_until_) return true;
  free_until_ = done() + memory_.capacity();
  return end + kRecordHeadBytes <= free_until_;
}

std::byte* RingWriter::reserve(std::size_t length) {
  PULLMAN_CHECK(length <= max_record());
  const std::uint64_t bytes = kRecordHeadBytes + padded(length);
  const std::size_t rest = memory_.rest(position_);
  const std::uint64_t begin = bytes <= rest ? position_ : position_ + rest;
  if (!has_room(begin + bytes)) return nullptr;
  begin_ = begin;
  end_ = begin + bytes;
  length_ = length;
  return memory_.at(begin + kRecordHeadBytes);
}

void RingWriter::commit(bool marked) {
  memory_.head(end_).store(0, std::memory_order_relaxed);
  memory_.head(begin_).store(head_of(static_cast<std::uint32_t>(length_), marked, begin_),
                             std::memory_order_release);
  if (begin_ != position_) {
    memory_.head(position_).store(skip_head(position_), std::memory_order_release);
  }
  position_ = end_;
}

// What the reader says is believed only as far as it can be true.
std::uint64_t RingWriter::done() const {
  const std::uint64_t read = memory_.read().load(std::memory_order_acquire);
  const bool possible = read <= position_ && position_ - read <= memory_.capacity();
  return possible ? read : free_until_ - std::min(free_until_, std::uint64_t{memory_.capacity()});
}

std::optional<std::span<const std::byte>> RingReader::front() {
  if (corrupt_) return std::nullopt;
  std::uint64_t head = memory_.head(position_).load(std::memory_order_acquire);
  if (head == 0) return std::nullopt;
  if (head == skip_head(position_) && memory_.rest(position_) != memory_.capacity()) {
    position_ += memory_.rest(position_);
    head = memory_.head(position_).load(std::memory_order_acquire);
  }
  const std::uint64_t length = (head & kSkip & ~kMarked) - 1;
  const std::uint64_t bytes = kRecordHeadBytes + padded(length);
  const bool good = head >> 32 == (position_ >> 3 & kSkip) && (head & kSkip & ~kMarked) != 0 &&
                    length <= memory_.max_record() && bytes <= memory_.rest(position_);
  if (!good) {
    corrupt_ = true;
    return std::nullopt;
  }
  end_ = position_ + bytes;
  marked_ = (head & kMarked) != 0;
  return std::span(memory_.at(position_ + kRecordHeadBytes), length);
}

void RingReader::pop() {
  position_ = end_;
  memory_.read().store(position_, std::memory_order_release);
}

}  // namespace pullman::shm
