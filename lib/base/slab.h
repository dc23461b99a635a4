// Memory for any number of small objects of one type, taken in pieces of many: to make one and to
// destroy it takes a few instructions, and of each there are its own bytes and no more. The pieces
// go back when none is in use, but for one.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pullman {

template <typename T>
class Slab {
 public:
  static constexpr std::size_t kPerPiece = 128;

  explicit Slab(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
      : memory_(memory) {}
  ~Slab() {
    PULLMAN_CHECK(in_use_ == 0);
    while (!pieces_.empty()) drop_piece();
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Null: there is no memory.
  T* make() noexcept {
    if (free_ == nullptr && !add_piece()) return nullptr;
    Cell* const cell = free_;
    free_ = cell->next;
    ++in_use_;
    return new (cell) T;
  }

  void destroy(T* object) noexcept {
    object->~T();
    free_ = new (object) Cell{free_};
    if (--in_use_ == 0 && pieces_.size() > 1) keep_one();
  }

  std::size_t in_use() const { return in_use_; }

 private:
  struct Cell {
    Cell* next;
  };
  static_assert(sizeof(T) >= sizeof(Cell) && alignof(T) >= alignof(Cell));
  static constexpr std::size_t kPieceBytes = kPerPiece * sizeof(T);

  bool add_piece() noexcept try {
    pieces_.reserve(pieces_.size() + 1 > pieces_.capacity() ? 2 * pieces_.size() + 1 : 0);
    pieces_.push_back(static_cast<std::byte*>(memory_.allocate(kPieceBytes, alignof(T))));
    thread(pieces_.back());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  // Its cells are free, the first one first.
  void thread(std::byte* piece) {
    for (std::size_t i = kPerPiece; i-- > 0;) free_ = new (piece + i * sizeof(T)) Cell{free_};
  }
  void drop_piece() {
    memory_.deallocate(pieces_.back(), kPieceBytes, alignof(T));
    pieces_.pop_back();
  }
  void keep_one() {
    while (pieces_.size() > 1) drop_piece();
    free_ = nullptr;
    thread(pieces_.front());
  }

  std::pmr::memory_resource& memory_;
  std::vector<std::byte*> pieces_;
  Cell* free_ = nullptr;
  std::size_t in_use_ = 0;
};

}  // namespace pullman
