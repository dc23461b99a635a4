// Places for copies of messages. A program that waits for each of its sends gets its buffer back
// with the copy, not with the ACK. There are few, so that who sends many at a time has none copied.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace pullman::ofi {

class BounceBuffers {
 public:
  // Of one. What is longer waits for its ACK, which costs as much as this copy.
  static constexpr std::size_t kBytes = 64 * 1024;

  // Null: all are lent.
  std::byte* take() {
    if (used_ == places_.size()) return nullptr;
    std::unique_ptr<std::byte[]>& place = places_[used_];
    if (place == nullptr) place = std::make_unique_for_overwrite<std::byte[]>(kBytes);
    ++used_;
    return place.release();
  }
  void give_back(std::byte* place) { places_[--used_].reset(place); }

 private:
  std::array<std::unique_ptr<std::byte[]>, 4> places_;  // those that are not lent, at the end
  std::size_t used_ = 0;
};

}  // namespace pullman::ofi
