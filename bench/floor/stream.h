// How fast bursts of packets go at most, by how many segments the kernel gathers them from.
#pragma once

#include <string>

namespace bare {

struct Stream {
  std::string own;
  std::string peer;       // of pour()
  unsigned segments = 1;  // for each packet: a head and data, or one
  bool copy = false;      // two, which the program copies together first
  double seconds = 1;
};

void take(const Stream& options);  // prints what came
void pour(const Stream& options);  // until nobody takes any more

}  // namespace bare
