// Memory for any number of small objects of one type, allocated in pieces of several objects.
// Making and destroying an object takes a few instructions; its overhead is one pointer. A piece is
// freed when none of its objects is in use, except that one such piece is kept.
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
  // A small number, since one object in use keeps its whole piece.
  static constexpr std::size_t kPerPiece = 32;

  explicit Slab(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
      : memory_(memory) {}
  ~Slab() {
    PULLMAN_CHECK(in_use_ == 0);
    open_.clear_and_dispose([this](Piece* piece) { give_back(piece); });
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // Returns null if there is no memory.
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
    // At the front, objects are taken from this piece next, so that other pieces become empty.
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
  // Keeps one empty piece, as the last to take objects from.
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
  // The pieces with free cells.
  boost::intrusive::list<Piece, boost::intrusive::constant_time_size<false>> open_;
  Piece* spare_ = nullptr;  // the empty piece among them, if any
  std::size_t in_use_ = 0;
};

}  // namespace pullman
