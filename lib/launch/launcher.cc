#include "launch/launcher.h"

#include "launch/pmi2.h"
#include "launch/pmix.h"

namespace pullman::launch {

Found find_launcher() {
  if (speaks_pmix()) return begin_pmix();
  if (speaks_pmi2()) return begin_pmi2();
  return {};
}

}  // namespace pullman::launch
