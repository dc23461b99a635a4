// Memory for any number of small objects of one type, taken in pieces of several: to make one and
// to destroy it takes a few instructions, and of each there are its own bytes and a pointer. A
// piece goes back when none of it is in use, but for one.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <memory_resource>
#include <new>

#include "base/check.h"

namespace pullman {

template <typename T>
class Slab {
 public:
  // Few: one object that stays keeps its piece.
  static constexpr std::size_t kPerPiece = 32;

  explicit Slab(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
      : memory_(memory) {}
  ~Slab() {
    PULLMAN_CHECK(in_use_ == 0);
    open_.clear_and_dispose([this](Piece* piece) { give_back(piece); });
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Null: there is no memory.
  T* make() noexcept {
    if (open_.empty() && !add_piece()) return nullptr;
    Piece& piece = open_.front();
    Cell* const cell = piece.free;
    piece.free = cell->next;
    if (piece.in_use++ == 0) spare_ = nullptr;
    if (piece.free == nullptr) open_.pop_front();
    ++in_use_;
    return new (cell->bytes) T;
  }

  void destroy(T* object) noexcept {
    object->~T();
    Cell* const cell = cell_of(object);
    Piece& piece = *cell->piece;
    // The one taken from next: so others become empty.
    if (piece.free == nullptr) open_.push_front(piece);
    cell->next = piece.free;
    piece.free = cell;
    --in_use_;
    if (--piece.in_use == 0) keep_one(piece);
  }

  std::size_t in_use() const { return in_use_; }

 private:
  struct Piece;
  struct Cell {
    Piece* piece;
    union {
      Cell* next;  // while it is free
      alignas(T) std::byte bytes[sizeof(T)];
    };
  };
  struct Piece : boost::intrusive::list_base_hook<> {
    Cell* free = nullptr;
    std::size_t in_use = 0;
    Cell cells[kPerPiece];
  };

  static Cell* cell_of(T* object) {
    return reinterpret_cast<Cell*>(reinterpret_cast<std::byte*>(object) - offsetof(Cell, bytes));
  }
  bool add_piece() noexcept try {
    Piece* const piece = new (memory_.allocate(sizeof(Piece), alignof(Piece))) Piece;
    for (std::size_t i = kPerPiece; i-- > 0;) {
      piece->cells[i].piece = piece;
      piece->cells[i].next = piece->free;
      piece->free = &piece->cells[i];
    }
    open_.push_front(*piece);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  // The empty one is taken from last.
  void keep_one(Piece& piece) {
    open_.erase(open_.iterator_to(piece));
    if (spare_ != nullptr) return give_back(&piece);
    spare_ = &piece;
    open_.push_back(piece);
  }
  void give_back(Piece* piece) {
    piece->~Piece();
    memory_.deallocate(piece, sizeof(Piece), alignof(Piece));
  }

  std::pmr::memory_resource& memory_;
  // Those with free cells.
  boost::intrusive::list<Piece, boost::intrusive::constant_time_size<false>> open_;
  Piece* spare_ = nullptr;  // of them the empty one
  std::size_t in_use_ = 0;
};

}  // namespace pullman
