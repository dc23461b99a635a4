// What both PMI clients, PMI-1 and PMI-2, ask of their process and its environment.
#pragma once

#include <cstdlib>
#include <string_view>

namespace pullman::launch {

// Returns whether an MPI library is loaded in this process, also for a plug-in alone. MPI libraries
// often have a PMI client of their own inside, and the launcher has one socket for each process, so
// there may be only one conversation.
bool has_mpi();

// Returns whether the environment says that the launcher speaks PMI-1 or PMI-2.
inline bool speaks_pmi() {
  return std::getenv("PMI_FD") != nullptr && std::getenv("PMI_RANK") != nullptr;
}

// Returns whether another job had the launcher start this one.
inline bool is_spawned_by_pmi() {
  const char* const spawned = std::getenv("PMI_SPAWNED");
  return spawned != nullptr && std::string_view(spawned) == "1";
}

}  // namespace pullman::launch
