// What both PMI clients ask of their process.
#pragma once

#include <cstdlib>
#include <string_view>

namespace pullman::launch {

// Returns whether an MPI library is loaded in this process, also for a plug-in alone. MPI libraries
// often have a PMI client of their own inside, and the launcher has one socket for each process, so
// there may be only one conversation.
bool has_mpi();

// Returns whether another job had the launcher start this one.
inline bool is_spawned_by_pmi() {
  const char* const spawned = std::getenv("PMI_SPAWNED");
  return spawned != nullptr && std::string_view(spawned) == "1";
}

}  // namespace pullman::launch
