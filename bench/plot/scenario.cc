#include "plot/scenario.h"

namespace pullman::lab {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kGigabit = 1'000'000'000;

// A road of 10 Gb/s: 20 us there and back, a switch's share of a megabyte.
RoadPlan fast() {
  return {};
}

RoadPlan gigabit(std::size_t queue_bytes) {
  RoadPlan road;
  road.bits_per_second = kGigabit;
  road.queue_bytes = queue_bytes;
  return road;
}

RoadPlan lossy(std::uint32_t millionths) {
  RoadPlan road = fast();
  road.loss_millionths = millionths;
  return road;
}

// What is in flight lies on the road, not in a queue.
RoadPlan far(std::uint32_t millionths) {
  RoadPlan road = lossy(millionths);
  road.delay = microseconds(500);
  road.socket_packets = 4096;
  return road;
}

RoadPlan crooked() {
  RoadPlan road = fast();
  road.reorder_millionths = 20'000;
  road.reorder_by = microseconds(100);
  return road;
}

// Each packet costs a call that takes as long as between two network namespaces.
RoadPlan dear(std::size_t packets_per_turn) {
  RoadPlan road = fast();
  road.packet_cost = microseconds(6);
  road.packets_per_turn = packets_per_turn;
  return road;
}

RoadPlan shallow_switch() {
  RoadPlan road = fast();
  road.queue_bytes = 150'000;
  return road;
}

}  // namespace

std::size_t Scenario::hosts() const {
  switch (pattern) {
    case Pattern::kEachToOne:
    case Pattern::kPairs:
      return 2 * senders;
    case Pattern::kAllToOne:
      return senders + 1;
    case Pattern::kRing:
    case Pattern::kAllToAll:
      return senders;
  }
  return 0;
}

std::vector<Scenario::Flow> Scenario::flows() const {
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < hosts(); ++i) {
    switch (pattern) {
      case Pattern::kEachToOne:
        if (i < senders) flows.push_back({i, i + senders});
        break;
      case Pattern::kAllToOne:
        if (i < senders) flows.push_back({i, senders});
        break;
      case Pattern::kPairs:
        flows.push_back({i, (i + senders) % hosts()});
        break;
      case Pattern::kRing:
        flows.push_back({i, (i + 1) % hosts()});
        break;
      case Pattern::kAllToAll:
        for (std::size_t to = 0; to < hosts(); ++to) {
          if (to != i) flows.push_back({i, to});
        }
        break;
    }
  }
  return flows;
}

std::vector<Scenario> scenarios() {
  return {
      {.name = "clean", .what = "one flow alone on 10 Gb/s, 20 us", .road = fast()},
      {.name = "two",
       .what = "two flows share 1 Gb/s; the second joins after 100 ms",
       .road = gigabit(1'000'000),
       .senders = 2,
       .start_every = milliseconds(100),
       .duration = milliseconds(600)},
      {.name = "two-fast",
       .what = "two flows share 10 Gb/s; the second joins after 50 ms",
       .road = fast(),
       .senders = 2,
       .start_every = milliseconds(50),
       .duration = milliseconds(300)},
      {.name = "sixteen",
       .what = "16 flows share 10 Gb/s; one joins every 5 ms",
       .road = fast(),
       .senders = 16,
       .start_every = milliseconds(5),
       .duration = milliseconds(400)},
      {.name = "incast",
       .what = "64 senders to one receiver, 10 Gb/s",
       .road = fast(),
       .senders = 64,
       .pattern = Scenario::Pattern::kAllToOne,
       .message_bytes = 16384,
       .messages = 16,
       .duration = milliseconds(400)},
      {.name = "incast-slow",
       .what = "64 senders to one receiver, 1 Gb/s",
       .road = gigabit(1'000'000),
       .senders = 64,
       .pattern = Scenario::Pattern::kAllToOne,
       .messages = 8,
       .duration = milliseconds(1600)},
      {.name = "incast-late",
       .what = "64 senders to one receiver, 1 Gb/s; each looks every 800 us",
       .road = gigabit(1'000'000),
       .senders = 64,
       .pattern = Scenario::Pattern::kAllToOne,
       .messages = 8,
       .start_every = microseconds(7),
       .duration = milliseconds(1600),
       .look_every = microseconds(800)},
      {.name = "incast-shallow",
       .what = "64 senders to one receiver, 10 Gb/s, 100 packets of queue",
       .road = shallow_switch(),
       .senders = 64,
       .pattern = Scenario::Pattern::kAllToOne,
       .message_bytes = 16384,
       .messages = 16,
       .duration = milliseconds(400)},
      {.name = "incast-256",
       .what = "256 senders to one receiver, 10 Gb/s, 100 packets of queue",
       .road = shallow_switch(),
       .senders = 256,
       .pattern = Scenario::Pattern::kAllToOne,
       .message_bytes = 16384,
       .messages = 4,
       .duration = milliseconds(400),
       .samples = 40},
      {.name = "shallow",
       .what = "one flow, 1 Gb/s with 30 KB of queue",
       .road = gigabit(30'000),
       .duration = milliseconds(400)},
      {.name = "shallow-four",
       .what = "four flows, 1 Gb/s with 30 KB of queue",
       .road = gigabit(30'000),
       .senders = 4,
       .duration = milliseconds(400)},
      {.name = "deep",
       .what = "one flow, 1 Gb/s with 4 MB of queue",
       .road = gigabit(4'000'000),
       .duration = milliseconds(400)},
      {.name = "loss-0.1", .what = "0.1 % of all packets lost", .road = lossy(1'000)},
      {.name = "loss-1", .what = "1 % of all packets lost", .road = lossy(10'000)},
      {.name = "loss-5", .what = "5 % of all packets lost", .road = lossy(50'000)},
      {.name = "far", .what = "one flow on 10 Gb/s, 1 ms there and back", .road = far(0)},
      {.name = "far-loss-1", .what = "1 ms there and back, 1 % lost", .road = far(10'000)},
      {.name = "far-loss-5", .what = "1 ms there and back, 5 % lost", .road = far(50'000)},
      {.name = "reordering", .what = "2 % of all packets up to 100 us late", .road = crooked()},
      {.name = "busy",
       .what = "both hosts stand still for 1 ms, every 10 ms or so",
       .road = fast(),
       .stall_every = milliseconds(10),
       .stall_for = milliseconds(1)},
      {.name = "both-ways",
       .what = "both ways at once, 10 Gb/s; a packet takes 0.2 us of a processor",
       .road = fast(),
       .pattern = Scenario::Pattern::kPairs,
       .start_every = milliseconds(1)},
      {.name = "both-ways-dear",
       .what = "both ways at once; a packet takes 6 us of a processor, 16 make a turn",
       .road = dear(16),
       .pattern = Scenario::Pattern::kPairs,
       .duration = milliseconds(2000)},
      {.name = "both-ways-long",
       .what = "both ways at once; a packet takes 6 us of a processor, 64 make a turn",
       .road = dear(64),
       .pattern = Scenario::Pattern::kPairs,
       .duration = milliseconds(2000)},
      {.name = "ring",
       .what = "four hosts in a ring; a packet takes 6 us of a processor, 16 make a turn",
       .road = dear(16),
       .senders = 4,
       .pattern = Scenario::Pattern::kRing,
       .duration = milliseconds(2000)},
      {.name = "all-to-all",
       .what =
           "four hosts, each to every other; a packet takes 6 us of a processor, 16 make a turn",
       .road = dear(16),
       .senders = 4,
       .pattern = Scenario::Pattern::kAllToAll,
       .duration = milliseconds(2000)},
  };
}

}  // namespace pullman::lab
