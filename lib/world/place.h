// Which process of its job this one is, where no launcher that is asked says so, but the
// environment does.
#pragma once

#include <optional>

namespace pullman::world {

struct Place {
  unsigned rank = 0;
  unsigned size = 1;
};

// Throws Error(kBadOption) unless the rank is one of that many processes.
void check(Place place);

// Reads PULLMAN_RANK and PULLMAN_SIZE, else what Open MPI, a PMI launcher or Slurm says. Throws
// Error(kBadOption) if it is nonsense; returns nothing if there is none.
std::optional<Place> place_in_environment();

}  // namespace pullman::world
