#include "ofi/lock.h"

#include <utility>

#include "ofi/waiter.h"

namespace pullman::ofi {
void Lock::wake_sleeper() {
  std::exchange(sleeper_, nullptr)->ring();
}

}  // namespace pullman::ofi
