// Which messages of one direction between two peers have begun to arrive, so that the window of ids
// need not wait for them (wire.md 4.3): their ids are finished. A floor below which all are, and
// 4096 ids beyond it, in a bitmap taken from a pool only while they finish out of order.
//
// The sender asks it how far it may run ahead, the receiver what it has had before. Knows nothing
// else: messages that have begun and are not over may be any number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/bitmap.h"
#include "base/check.h"
#include "base/pool.h"
#include "base/sequence.h"

namespace pullman::message {

inline constexpr std::size_t kIdWindow = 4096;  // wire.md 4.3
// How far a sender runs ahead of its oldest message that is not over: the wire tells 32 bits of an
// id, and those of a grant are to mean one message only.
inline constexpr MessageId kIdsToOldest = MessageId{1} << 30;

// Finished ids beyond the floor.
struct IdBitmap {
  SlidingBitmap<kIdWindow> finished;
  MessageId end = 0;  // one past the highest of them
  Pool<IdBitmap>* pool = nullptr;
};

class IdWindow {
 public:
  IdWindow() = default;
  ~IdWindow() { give_back(); }
  IdWindow(const IdWindow&) = delete;
  IdWindow& operator=(const IdWindow&) = delete;

  void start(MessageId first) { floor_ = first; }

  // All ids below have finished.
  MessageId floor() const { return floor_; }
  bool contains(MessageId id) const { return id >= floor_ && id - floor_ < kIdWindow; }
  bool finished(MessageId id) const {
    return id < floor_ || (bitmap_ != nullptr && id < bitmap_->end && bitmap_->finished.test(id));
  }

  // finish() for so many consecutive ids.
  void finish_several(MessageId first, std::uint32_t count, Pool<IdBitmap>& bitmaps) {
    if (first == floor_ && bitmap_ == nullptr) {
      floor_ += count;
      return;
    }
    for (std::uint32_t i = 0; i < count; ++i) finish(first + i, bitmaps);
  }

  // `id` is within the window and has not finished before. The pool covers every window, so it has
  // a bitmap.
  void finish(MessageId id, Pool<IdBitmap>& bitmaps) {
    PULLMAN_DCHECK(contains(id) && !finished(id));
    if (id == floor_ && bitmap_ == nullptr) [[likely]] {  // in order, as nearly all are
      ++floor_;
    } else {
      finish_out_of_order(id, bitmaps);
    }
  }

 private:
  [[gnu::noinline]] void finish_out_of_order(MessageId id, Pool<IdBitmap>& bitmaps) {
    if (id == floor_) {
      floor_ = bitmap_->finished.pop_run(floor_ + 1);
    } else {
      if (bitmap_ == nullptr) take_bitmap(bitmaps);
      bitmap_->finished.set(id);
      if (id >= bitmap_->end) bitmap_->end = id + 1;
    }
    if (floor_ >= bitmap_->end) give_back();
  }
  void take_bitmap(Pool<IdBitmap>& bitmaps) {
    bitmap_ = bitmaps.take();
    PULLMAN_CHECK(bitmap_ != nullptr);
    bitmap_->pool = &bitmaps;
    bitmap_->end = floor_;
  }
  void give_back() {
    if (bitmap_ == nullptr) return;
    bitmap_->finished.reset();
    bitmap_->pool->give_back(bitmap_);
    bitmap_ = nullptr;
  }

  IdBitmap* bitmap_ = nullptr;  // only while there are any
  MessageId floor_ = 0;
};

}  // namespace pullman::message
