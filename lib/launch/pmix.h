// Launchers that speak PMIx (https://pmix.org, version 3 and later): Open MPI's mpirun, PRRTE, and
// srun with --mpi=pmix.
#pragma once

#include "launch/launcher.h"

namespace pullman::launch {

// Returns true if the environment says that the launcher speaks it.
bool speaks_pmix();
Found begin_pmix();

}  // namespace pullman::launch
