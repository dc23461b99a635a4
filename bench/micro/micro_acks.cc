// The ack tracker: judge a packet's number, note it, and write the ACKs that its policy asks for.
#include <array>

#include "base/check.h"
#include "micro/run.h"
#include "reliability/ack_tracker.h"

namespace pullman::bench {
namespace {

using reliability::AckNeed;
using reliability::AckTracker;
using reliability::Arrival;

struct Receiver {
  Receiver() { tracker.start(kFirst); }

  void arrive(PacketNumber number, std::uint16_t floor_distance) {
    wire::PacketHeader header;
    header.number = low32(number);
    header.floor_distance = floor_distance;
    PULLMAN_CHECK(tracker.judge(header) == Arrival::kNew);
    tracker.note(now += std::chrono::nanoseconds(300), header);
  }
  void ack_if_due() {
    if (tracker.need() < AckNeed::kEnough) return;
    wire::PacketHeader header;
    benchmark::DoNotOptimize(tracker.write_alone(now, header, sack.data()));
    benchmark::DoNotOptimize(header.cumulative);
  }

  static constexpr PacketNumber kFirst = PacketNumber{5} << 32;
  Pool<reliability::ArrivalBitmap> bitmaps{1};
  AckTracker tracker{bitmaps, 16};
  Instant now{std::chrono::seconds(1)};
  std::array<std::byte, AckTracker::kMaxSackBytes> sack;
};

// One way: an ACK alone per 16 packets.
void in_order(benchmark::State& state) {
  Receiver receiver;
  PacketNumber number = Receiver::kFirst;
  for (auto _ : state) {
    receiver.arrive(number++, 0);
    receiver.ack_if_due();
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// Both ways: an ACK is piggybacked on every packet that leaves.
void piggybacked(benchmark::State& state) {
  Receiver receiver;
  PacketNumber number = Receiver::kFirst;
  for (auto _ : state) {
    receiver.arrive(number++, 0);
    wire::PacketHeader header;
    receiver.tracker.piggyback(receiver.now, header);
    benchmark::DoNotOptimize(header.cumulative);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// Of kGroup packets the first comes last: a gap opens, ACKs with SACKs report it, it closes.
template <std::size_t kGroup>
void first_comes_last(benchmark::State& state) {
  Receiver receiver;
  PacketNumber number = Receiver::kFirst;
  for (auto _ : state) {
    for (std::size_t i = 1; i <= kGroup; ++i) {
      const std::size_t at = i % kGroup;
      receiver.arrive(number + at, static_cast<std::uint16_t>(at));
      receiver.ack_if_due();
    }
    number += kGroup;
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * kGroup);
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"acks/in_order", in_order},
              {"acks/piggybacked", piggybacked},
              {"acks/first_of_16_comes_last", first_comes_last<16>},
              {"acks/first_of_1024_comes_last", first_comes_last<1024>}});
}
