// The hotel: what a timer costs that nearly always leaves before it is due.
#include <vector>

#include "micro/run.h"
#include "reliability/hotel.h"

namespace pullman::bench {
namespace {

constexpr std::size_t kGuests = 4096;
constexpr Duration kStay = std::chrono::milliseconds(1);

struct House {
  // The guests' stays spread over that many floors.
  explicit House(std::size_t floors) : guests(kGuests), stays(kGuests) {
    for (std::size_t i = 0; i < kGuests; ++i) {
      stays[i] = reliability::Hotel<Guest>::stay_of(40 + i % floors);
    }
  }
  ~House() {
    for (Guest& guest : guests) {
      if (guest.checked_in()) hotel.check_out(guest);
    }
  }
  void check_in(std::size_t i) {
    hotel.check_in(now += std::chrono::nanoseconds(100), stays[i], guests[i]);
  }

  reliability::Hotel<Guest> hotel;
  std::vector<Guest> guests;
  std::vector<Duration> stays;
  Instant now{std::chrono::seconds(1)};
};

// 4096 guests; the oldest leaves and checks in again: an ACK came in time.
template <std::size_t kFloors>
void leave_in_time(benchmark::State& state) {
  House house(kFloors);
  for (std::size_t i = 0; i < kGuests; ++i) house.check_in(i);
  std::size_t next = 0;
  for (auto _ : state) {
    house.hotel.check_out(house.guests[next]);
    house.check_in(next);
    next = (next + 1) % kGuests;
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// Every guest stays until it is evicted.
void evict(benchmark::State& state) {
  reliability::Hotel<Guest> hotel;
  Guest guest;
  Instant now{std::chrono::seconds(1)};
  for (auto _ : state) {
    hotel.check_in(now, kStay, guest);
    benchmark::DoNotOptimize(hotel.evict(now += 2 * kStay));
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// What each turn of the loop asks, with guests on kFloors floors: is anybody due, and when next?
template <std::size_t kFloors>
void nobody_is_due(benchmark::State& state) {
  House house(kFloors);
  for (std::size_t i = 0; i < kFloors; ++i) house.check_in(i);
  for (auto _ : state) {
    benchmark::DoNotOptimize(house.hotel.evict(house.now));
    benchmark::DoNotOptimize(house.hotel.next_due());
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"hotel/leave_in_time_1_floor", leave_in_time<1>},
              {"hotel/leave_in_time_16_floors", leave_in_time<16>},
              {"hotel/evict", evict},
              {"hotel/nobody_is_due_1_floor", nobody_is_due<1>},
              {"hotel/nobody_is_due_16_floors", nobody_is_due<16>}});
}
