// Tells which messages of one direction between two peers have begun to arrive: their ids are
// finished, and the window of ids need not wait for them (wire.md 4.3). Holds a floor below which
// all ids are finished, and the 4096 ids beyond it in a bitmap, which is taken from a pool only
// while ids finish out of order.
//
// The sender uses it to see how far it may run ahead, the receiver to recognise duplicates. Knows
// nothing else: any number of messages may have begun and not be over.
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
// How far a sender may run ahead of its oldest unfinished message: the wire carries 32 bits of an
// id, and those in a GRANT must mean one message only.
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

  // All ids below it are finished.
  MessageId floor() const { return floor_; }
  bool contains(MessageId id) const { return id >= floor_ && id - floor_ < kIdWindow; }
  bool finished(MessageId id) const {
    return id < floor_ || (bitmap_ != nullptr && id < bitmap_->end && bitmap_->finished.test(id));
  }

  // Does finish() for `count` consecutive ids.
  void finish_several(MessageId first, std::uint32_t count, Pool<IdBitmap>& bitmaps) {
    if (first == floor_ && bitmap_ == nullptr) {
      floor_ += count;
      return;
    }
    for (std::uint32_t i = 0; i < count; ++i) finish(first + i, bitmaps);
  }

  // `id` is within the window and not finished yet. The pool has a bitmap for every window.
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

  IdBitmap* bitmap_ = nullptr;  // null while no id beyond the floor is finished
  MessageId floor_ = 0;
};

}  // namespace pullman::message
