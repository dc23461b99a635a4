#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace pullman {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "pullman: broken invariant: %s (%s:%d); please report this\n", condition,
               file, line);
  std::abort();
}

}  // namespace pullman
