// Which messages of one direction between two peers are finished: a floor below which all are, and
// 4096 ids beyond it, in a bitmap taken from a pool only while they finish out of order.
//
// The sender asks it how far it may run ahead, the receiver what it has had before. Knows nothing
// else.
#pragma once

#include "base/bitmap.h"
#include "base/check.h"
#include "base/pool.h"
#include "base/sequence.h"

namespace pullman::message {

inline constexpr std::size_t kIdWindow = 4096;  // wire.md 4.3
using IdBitmap = SlidingBitmap<kIdWindow>;

class IdWindow {
 public:
  explicit IdWindow(Pool<IdBitmap>& bitmaps) : bitmaps_(bitmaps) {}
  ~IdWindow() { give_back(); }
  IdWindow(const IdWindow&) = delete;
  IdWindow& operator=(const IdWindow&) = delete;

  void start(MessageId first) { floor_ = highest_ = first; }

  // All ids below have finished.
  MessageId floor() const { return floor_; }
  bool contains(MessageId id) const { return id >= floor_ && id - floor_ < kIdWindow; }
  bool finished(MessageId id) const {
    return id < floor_ || (bitmap_ != nullptr && id < highest_ && bitmap_->test(id));
  }

  // `id` is within the window and has not finished before. The pool covers every peer, so it has
  // one.
  void finish(MessageId id) {
    PULLMAN_DCHECK(contains(id) && !finished(id));
    if (id == floor_ && bitmap_ == nullptr) {  // in order, as nearly all are
      highest_ = ++floor_;
      return;
    }
    if (id == floor_) {
      floor_ = bitmap_->pop_run(floor_ + 1);
    } else {
      if (bitmap_ == nullptr) bitmap_ = bitmaps_.take();
      PULLMAN_CHECK(bitmap_ != nullptr);
      bitmap_->set(id);
      if (id >= highest_) highest_ = id + 1;
    }
    if (floor_ >= highest_) {
      highest_ = floor_;
      give_back();
    }
  }

 private:
  void give_back() {
    if (bitmap_ == nullptr) return;
    bitmap_->reset();
    bitmaps_.give_back(bitmap_);
    bitmap_ = nullptr;
  }

  Pool<IdBitmap>& bitmaps_;
  IdBitmap* bitmap_ = nullptr;  // finished ids beyond the floor
  MessageId floor_ = 0;
  MessageId highest_ = 0;  // one past the highest finished id
};

}  // namespace pullman::message
