// The send window, hotel included: each packet is numbered, checked in, found and released.
#include <vector>

#include "micro/run.h"
#include "reliability/send_window.h"

namespace pullman::bench {
namespace {

using channel::Packet;
using reliability::Hotel;
using reliability::SendWindow;
using reliability::WindowRings;

constexpr Duration kStay = std::chrono::milliseconds(1);

struct Sender {
  explicit Sender(std::size_t count) : packets(count) {}
  ~Sender() {
    for (Packet& packet : packets) {
      if (packet.checked_in()) window.remove(packet);
    }
  }
  void send(Packet& packet) { window.add(now += std::chrono::nanoseconds(300), kStay, packet); }

  Hotel<Packet> hotel;
  WindowRings rings{1};
  channel::PacketPool pool{64, 1472};
  reliability::WindowResources shared{hotel, rings, pool};
  SendWindow window{shared, PacketNumber{7} << 32};
  Instant now{std::chrono::seconds(1)};
  std::vector<Packet> packets;
};

// kInFlight packets stay in flight; the oldest is acked, and the next one sent.
template <std::size_t kInFlight>
void in_order(benchmark::State& state) {
  Sender sender(kInFlight);
  for (Packet& packet : sender.packets) sender.send(packet);
  for (auto _ : state) {
    Packet* oldest = sender.window.find(sender.window.floor());
    sender.window.remove(*oldest);
    sender.send(*oldest);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// One packet at a time: the ring comes from the pool and goes back each time.
void one_at_a_time(benchmark::State& state) {
  Sender sender(1);
  Packet& packet = sender.packets.front();
  for (auto _ : state) {
    sender.send(packet);
    benchmark::DoNotOptimize(packet.number);
    sender.window.remove(packet);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
}

// 64 in flight are acked newest first: the floor waits for the last.
void newest_first(benchmark::State& state) {
  Sender sender(64);
  for (auto _ : state) {
    for (Packet& packet : sender.packets) sender.send(packet);
    for (auto at = sender.packets.rbegin(); at != sender.packets.rend(); ++at) {
      sender.window.remove(*at);
    }
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * sender.packets.size());
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"window/one_at_a_time", one_at_a_time},
              {"window/in_order_of_64", in_order<64>},
              {"window/in_order_of_4096", in_order<4096>},
              {"window/newest_first_of_64", newest_first}});
}
