// The tree along which the processes of a world pass things on: every process but the root has one
// parent, and at most kArity children. Pure.
//
// Places are counted from the root, so that any rank may be it.
#pragma once

#include <cstdint>
#include <vector>

namespace pullman::world {

class Tree {
 public:
  // A process has so many children. Four messages leave in about the time in which one arrives.
  static constexpr unsigned kArity = 4;

  Tree(unsigned size, unsigned root) : size_(size), root_(root) {}

  bool is_root(unsigned rank) const { return rank == root_; }
  // For any rank but the root.
  unsigned parent(unsigned rank) const { return rank_at((place_of(rank) - 1) / kArity); }
  std::vector<unsigned> children(unsigned rank) const {
    std::vector<unsigned> found;
    const std::uint64_t first = std::uint64_t{place_of(rank)} * kArity + 1;
    for (std::uint64_t place = first; place < first + kArity && place < size_; ++place) {
      found.push_back(rank_at(static_cast<unsigned>(place)));
    }
    return found;
  }

 private:
  unsigned place_of(unsigned rank) const { return (rank + size_ - root_) % size_; }
  unsigned rank_at(unsigned place) const { return (place + root_) % size_; }

  const unsigned size_;
  const unsigned root_;
};

}  // namespace pullman::world
