// How long a line of the cache takes from one processor to another.
#pragma once

namespace bare {

struct Line {
  unsigned rounds = 21;  // each of 20,000 ways there and back
};

// Between the first two processors that we may run on; prints a line.
void pass(const Line& options);

}  // namespace bare
