// Launchers that speak PMI-2, for which Slurm's client library is used: srun with --mpi=pmi2, and
// MPICH's mpiexec (hydra).
#pragma once

#include "launch/launcher.h"

namespace pullman::launch {

// Finds neither a launcher nor a problem if there is no such library, or the launcher is known not
// to speak it.
Found begin_pmi2();

}  // namespace pullman::launch
