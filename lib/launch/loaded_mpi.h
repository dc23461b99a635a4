// Whether an MPI library has, or will have, this process' conversation with the launcher.
#pragma once

namespace pullman::launch {

// Returns whether an MPI library is loaded in this process, also for a plug-in alone. MPI libraries
// often have a PMI client of their own inside, and the launcher has one socket for each process, so
// there may be only one conversation.
bool has_mpi();

}  // namespace pullman::launch
