// What a lab can be asked to show: a road, and who sends over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "plot/road.h"

namespace pullman::lab {

struct Scenario {
  std::string name;
  std::string what;  // a plot's title
  RoadPlan road;
  std::size_t senders = 1;
  enum class Pattern : std::uint8_t {
    kEachToOne,  // each sender to a host of its own on the other side
    kAllToOne,   // all to one there
    kPairs,      // as kEachToOne, and those send back
    kRing,       // each sender to the next one, on one side
    kAllToAll,   // each sender to every other one, on one side
  };
  Pattern pattern = Pattern::kEachToOne;
  std::size_t message_bytes = 65536;
  std::size_t messages = 32;  // of each sender, under way
  Duration start_every{};     // a sender begins so much after the one before it
  Duration duration = std::chrono::milliseconds(200);
  Duration stall_every{};  // on average: a host stands still for stall_for
  Duration stall_for{};
  Duration look_every{};  // senders make a turn so often: each is one of many in a process
  std::size_t samples = 100;

  std::size_t hosts() const;
  struct Flow {
    std::size_t from = 0;
    std::size_t to = 0;
  };
  // All flows of the pattern; the index of one is its number.
  std::vector<Flow> flows() const;
};

std::vector<Scenario> scenarios();

}  // namespace pullman::lab
