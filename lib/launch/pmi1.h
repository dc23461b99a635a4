// Launchers that speak PMI-1, over the socket that they have left open: MPICH's mpiexec (hydra),
// Flux, and srun with --mpi=pmi2 where its library is not installed.
#pragma once

#include <memory>

#include "launch/launcher.h"

namespace pullman::launch {

Found begin_pmi1();

// Talks over that socket, as the process `rank` of `size`. Returns nothing if the other end does
// not answer as PMI-1 does. The socket stays the caller's.
std::unique_ptr<Launcher> talk_pmi1(int socket, unsigned rank, unsigned size);

}  // namespace pullman::launch
