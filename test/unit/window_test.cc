// reliability/send_window.h and window_rings.h: packets in flight, in a ring as large as needed.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <vector>

#include "base/random.h"
#include "reliability/send_window.h"

namespace pullman::reliability {
namespace {

constexpr Instant kNow{std::chrono::seconds(1)};
constexpr Duration kStay = std::chrono::milliseconds(1);

// A window, its hotel, and a map that models what is in flight.
struct Sender {
  explicit Sender(WindowRings& shared, PacketNumber first = PacketNumber{5} << 32)
      : resources{hotel, shared, pool}, window(resources, first) {}
  ~Sender() {
    while (!in_flight.empty()) remove(in_flight.begin()->first);
  }

  PacketNumber add() {
    Packet& packet = packets.emplace_back();
    window.add(kNow, kStay, packet);
    in_flight[packet.number] = &packet;
    return packet.number;
  }
  void add(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) add();
  }
  void remove(PacketNumber number) {
    window.remove(*in_flight.at(number));
    in_flight.erase(number);
  }
  bool finds_what_is_in_flight() {
    for (PacketNumber n = window.floor() - 100; n < window.next() + 100; ++n) {
      const auto at = in_flight.find(n);
      if (window.find(n) != (at == in_flight.end() ? nullptr : at->second)) return false;
    }
    return window.in_flight() == in_flight.size() && hotel.guests() == in_flight.size();
  }

  Hotel<Packet> hotel;
  channel::PacketPool pool{8192, 1472};
  WindowResources resources;
  SendWindow window;
  std::deque<Packet> packets;
  std::map<PacketNumber, Packet*> in_flight;
};

}  // namespace

TEST_CASE(
    "a window's ring grows with the packets in flight and is given back when there are none") {
  WindowRings rings(1);
  Sender sender(rings);
  for (const std::size_t slots : {1, 8, 64, 512, 4096}) {
    sender.add(slots - sender.window.in_flight());
    CHECK(sender.window.slots() == slots);
    CHECK(sender.finds_what_is_in_flight());
    CHECK(rings.in_use() == (slots == 1 ? 0 : 1));
  }
  CHECK_FALSE(sender.window.has_space());

  while (!sender.in_flight.empty()) sender.remove(sender.in_flight.begin()->first);

  CHECK(sender.window.slots() == 1);
  CHECK(rings.in_use() == 0);
  sender.add(9);
  CHECK(sender.window.slots() == 64);
  CHECK(sender.finds_what_is_in_flight());
}

TEST_CASE("a ring grows with the numbers between floor and next, not with the packets") {
  WindowRings rings(1);
  Sender sender(rings);
  const PacketNumber oldest = sender.add();
  for (int i = 0; i < 4095; ++i) {
    REQUIRE(sender.window.has_space());
    const PacketNumber n = sender.add();
    if (i < 4094) sender.remove(n);
  }
  CHECK(sender.window.in_flight() == 2);
  CHECK(sender.window.slots() == 4096);
  CHECK_FALSE(sender.window.has_space());
  CHECK(sender.finds_what_is_in_flight());

  sender.remove(oldest);

  CHECK(sender.window.has_space());
}

TEST_CASE("packets are found by number through growth, acks in any order, and the wrap") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    WindowRings rings(1);
    Sender sender(rings, (PacketNumber{1} << 32) - 1 - random.below(1000));
    for (int step = 0; step < 40; ++step) {
      for (auto more = random.below(200); more > 0 && sender.window.has_space(); --more) {
        sender.add();
      }
      for (auto less = random.below(220); less > 0 && !sender.in_flight.empty(); --less) {
        auto at = sender.in_flight.begin();
        std::advance(at, static_cast<long>(random.below(sender.in_flight.size())));
        sender.remove(at->first);
      }
      REQUIRE(sender.finds_what_is_in_flight());
    }
  }
}

TEST_CASE("rings are limited: a link without one has one slot, and links that have one may grow") {
  WindowRings rings(2);
  Sender first(rings), second(rings), third(rings);
  first.add(9);
  second.add(9);
  third.add(1);
  CHECK_FALSE(third.window.has_space());

  first.add(4087);
  second.add(4087);
  CHECK_FALSE(third.window.has_space());
  second.remove(second.in_flight.begin()->first);
  CHECK_FALSE(third.window.has_space());

  while (!second.in_flight.empty()) second.remove(second.in_flight.begin()->first);

  CHECK(third.window.has_space());
  third.add(4088);
  CHECK(third.finds_what_is_in_flight());
}

}  // namespace pullman::reliability
