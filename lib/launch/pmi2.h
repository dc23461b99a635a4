// Launchers that speak PMI-2, for which Slurm's client library is used: srun with --mpi=pmi2, and
// MPICH's mpiexec (hydra).
#pragma once

#include "launch/launcher.h"

namespace pullman::launch {

// Returns true if the environment says that the launcher speaks it, or the older PMI-1.
bool speaks_pmi2();
Found begin_pmi2();

}  // namespace pullman::launch
