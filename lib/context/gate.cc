#include "context/gate.h"

#include <cstdio>
#include <cstdlib>

namespace pullman {

// This is the program's mistake. What the child sent would be taken for its parent's, under numbers
// that the parent uses for other packets.
void Gate::refuse() {
  std::fputs(
      "pullman: a Context was used in a child of the process that opened it: after fork() only the "
      "parent may, and the child opens another\n",
      stderr);
  std::abort();
}

}  // namespace pullman
