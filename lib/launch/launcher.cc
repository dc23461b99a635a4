#include "launch/launcher.h"

#include "launch/pmi1.h"
#include "launch/pmi2.h"
#include "launch/pmi_process.h"
#include "launch/pmix.h"

namespace pullman::launch {

Found find_launcher() {
  if (speaks_pmix()) return begin_pmix();
  if (!speaks_pmi()) return {};
  const Found found = begin_pmi2();
  if (found.launcher != nullptr || !found.problem.empty()) return found;
  return begin_pmi1();
}

}  // namespace pullman::launch
