// How many small messages a second bare datagrams carry at most, in windows: 64 messages, then a
// word back.
#pragma once

#include <string>

namespace bare {

struct Window {
  std::string own;
  std::string peer;
  unsigned rounds = 21;  // each of 50 ms a step
};

void collect(const Window& options);  // until the other end says that it is over
void fill(const Window& options);     // prints a line for each step

}  // namespace bare
