// Finds a peer's slot in the table of peers by a hash of its epoch or address. An entry takes eight
// bytes, and at least a quarter of the places is empty. A map with a node and a bucket for each
// peer took forty, which is most of an index of 10,000 idle peers.
//
// The index uses open addressing: an entry stands in its home place or, with no gap between, after
// it. It does not know peers: the caller says whether an entry is the one that is meant.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pullman::engine {

inline constexpr std::uint32_t kNoSlot = 0xFFFFFFFF;

class PeerIndex {
 public:
  // Returns the slot of the entry with this hash that `is_meant(slot)`; kNoSlot if there is none.
  template <typename IsMeant>
  std::uint32_t find(std::uint64_t hash, IsMeant is_meant) const {
    const std::size_t at = place_of(hash, is_meant);
    return at == places_.size() ? kNoSlot : places_[at].slot;
  }

  void add(std::uint64_t hash, std::uint32_t slot) {
    if (4 * (used_ + 1) > 3 * places_.size()) grow();
    put({fold(hash), slot});
    ++used_;
  }

  void remove(std::uint64_t hash, std::uint32_t slot) {
    std::size_t hole = place_of(hash, [slot](std::uint32_t other) { return other == slot; });
    if (hole == places_.size()) return;
    --used_;
    // Entries after the hole that could stand in it move there, so that no search ends too soon.
    for (std::size_t at = next(hole); places_[at].slot != kNoSlot; at = next(at)) {
      if (distance(places_[at].hash, at) < distance(hole, at)) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole].slot = kNoSlot;
  }

  std::size_t size() const { return used_; }

 private:
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t slot = kNoSlot;  // kNoSlot: empty
  };

  static std::uint32_t fold(std::uint64_t hash) {
    return static_cast<std::uint32_t>((hash * 0x9E3779B97F4A7C15) >> 32);
  }
  std::size_t next(std::size_t place) const { return (place + 1) & (places_.size() - 1); }
  // Returns how many places `at` is behind `from`, an entry's home or another place.
  std::size_t distance(std::size_t from, std::size_t at) const {
    return (at - from) & (places_.size() - 1);
  }

  template <typename IsMeant>
  std::size_t place_of(std::uint64_t hash, IsMeant is_meant) const {
    if (used_ == 0) return places_.size();
    const std::uint32_t wanted = fold(hash);
    for (std::size_t at = wanted & (places_.size() - 1); places_[at].slot != kNoSlot;
         at = next(at)) {
      if (places_[at].hash == wanted && is_meant(places_[at].slot)) return at;
    }
    return places_.size();
  }

  void put(Place entry) {
    std::size_t at = entry.hash & (places_.size() - 1);
    while (places_[at].slot != kNoSlot) at = next(at);
    places_[at] = entry;
  }

  void grow() {
    const std::vector<Place> before = std::move(places_);
    places_ = std::vector<Place>(before.empty() ? 16 : 2 * before.size());
    for (const Place& entry : before) {
      if (entry.slot != kNoSlot) put(entry);
    }
  }

  std::vector<Place> places_;  // none, or a power of two
  std::size_t used_ = 0;
};

}  // namespace pullman::engine
