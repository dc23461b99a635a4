// What half a round trip costs at least.
#pragma once

#include <cstddef>
#include <string>

namespace bare {

struct Latency {
  std::string own;
  std::string peer;
  std::size_t bytes = 64;
  unsigned rounds = 21;  // each of 50 ms a step
};

void answer(const Latency& options);  // until the other end says that it is over
void ask(const Latency& options);     // prints a line for each step

}  // namespace bare
