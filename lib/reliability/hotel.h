// The hotel: timers for guests (packets) that nearly always check out before their timer expires
// (decision 0002).
//
// A guest's `stay` is its timeout. All guests of a floor have the same stay, so a floor is a FIFO
// ordered by due time: check-in, check-out and finding the next eviction (expired timer) are O(1),
// without a heap or allocation. Four floors divide each power of two of time, so a stay is rounded
// up by at most a quarter.
//
// Knows nothing of packets or links, and reads no clock. `now` never runs backwards.
#pragma once

#include <array>
#include <bit>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/guest.h"
#include "base/time.h"

namespace pullman::reliability {

// One floor: all its guests have the same timeout. T derives from Guest.
template <typename T>
class Floor {
 public:
  explicit Floor(Duration stay = {}) : stay_(stay) {}

  void check_in(Instant now, T& guest) {
    guest.due = now + stay_;
    guests_.push_back(guest);
  }
  void check_in_beside(T& neighbour, T& guest) {
    guest.due = neighbour.due;
    guests_.insert(guests_.iterator_to(neighbour), guest);
  }
  void check_out(T& guest) { guests_.erase(guests_.iterator_to(guest)); }

  Instant next_due() const { return guests_.empty() ? kNever : guests_.front().due; }
  bool empty() const { return guests_.empty(); }

  // Checks out and returns the guest that is due first if its timer has expired; else null.
  T* evict(Instant now) {
    if (guests_.empty() || guests_.front().due > now) return nullptr;
    T& guest = guests_.front();
    guests_.pop_front();
    return &guest;
  }

 private:
  Duration stay_;
  boost::intrusive::list<T, boost::intrusive::constant_time_size<false>> guests_;
};

template <typename T>
class Hotel {
 public:
  static constexpr std::size_t kFloors = 128;

  Hotel() {
    for (std::size_t i = 0; i < kFloors; ++i) floors_[i] = Floor<T>(stay_of(i));
  }

  void check_in(Instant now, Duration stay, T& guest) { check_in_at(now, floor_for(stay), guest); }
  // The same for callers that check in many guests of one stay: `floor` is floor_for(stay).
  void check_in_at(Instant now, std::size_t floor, T& guest) {
    guest.floor = static_cast<std::uint8_t>(floor);
    floors_[floor].check_in(now, guest);
    if (guest.due < nobody_before_) nobody_before_ = guest.due;
    occupied_[floor >> 6] |= std::uint64_t{1} << (floor & 63);
    ++guests_;
  }

  // Checks in a guest whose timer expires with that of its neighbour, which is checked in.
  void check_in_beside(T& neighbour, T& guest) {
    guest.floor = neighbour.floor;
    floors_[guest.floor].check_in_beside(neighbour, guest);
    ++guests_;
  }

  void check_out(T& guest) {
    floors_[guest.floor].check_out(guest);
    left(guest.floor);
  }

  // Checks out and returns a guest whose timer has expired; null if there is none.
  T* evict(Instant now) {
    if (now < nobody_before_) [[likely]]
      return nullptr;
    for (std::size_t half = 0; half < occupied_.size(); ++half) {
      for (std::uint64_t bits = occupied_[half]; bits != 0; bits &= bits - 1) {
        const std::size_t floor = half * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (T* guest = floors_[floor].evict(now)) {
          left(floor);
          return guest;
        }
      }
    }
    nobody_before_ = next_due();
    return nullptr;
  }

  Instant next_due() const {
    Instant next = kNever;
    for (std::size_t half = 0; half < occupied_.size(); ++half) {
      for (std::uint64_t bits = occupied_[half]; bits != 0; bits &= bits - 1) {
        const std::size_t floor = half * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (floors_[floor].next_due() < next) next = floors_[floor].next_due();
      }
    }
    return next;
  }

  std::size_t guests() const { return guests_; }

  // Returns the floor with the shortest stay of at least `stay`, or the last floor if none has one.
  static constexpr std::size_t floor_for(Duration stay) {
    const auto units =
        stay.count() <= 0 ? 0 : static_cast<std::uint64_t>(stay.count() + 1023) >> 10;
    if (units <= 4) return units;
    const auto exponent = static_cast<std::size_t>(std::bit_width(units - 1)) - 3;
    const std::size_t floor = exponent * 4 + ((units - 1) >> exponent) + 1;
    return floor < kFloors ? floor : kFloors - 1;
  }

  // Floors 0..4 have a stay of 0..4 units of 1024 ns; after them, four floors make each doubling.
  static constexpr Duration stay_of(std::size_t floor) {
    if (floor <= 4) return Duration(static_cast<std::int64_t>(floor) << 10);
    const std::size_t exponent = (floor - 5) / 4;
    const std::size_t mantissa = 5 + (floor - 5) % 4;
    return Duration(static_cast<std::int64_t>(mantissa << exponent) << 10);
  }

 private:
  void left(std::size_t floor) {
    PULLMAN_DCHECK(guests_ > 0);
    --guests_;
    if (floors_[floor].empty()) occupied_[floor >> 6] &= ~(std::uint64_t{1} << (floor & 63));
  }

  std::array<Floor<T>, kFloors> floors_;
  std::array<std::uint64_t, kFloors / 64> occupied_{};  // a bit for each floor with guests
  std::size_t guests_ = 0;
  Instant nobody_before_ = kNever;  // a lower bound of next_due()
};

}  // namespace pullman::reliability
