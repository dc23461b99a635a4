#include "world/place.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "launch/number.h"
#include "pullman/status.h"

namespace pullman::world {
namespace {

struct Names {
  const char* rank;
  const char* size;
};
// What was asked for, then the launcher that started this process: one that runs within another's
// job has the other's variables, too.
constexpr Names kNames[] = {{"PULLMAN_RANK", "PULLMAN_SIZE"},
                            {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                            {"PMI_RANK", "PMI_SIZE"},
                            {"SLURM_PROCID", "SLURM_NTASKS"}};

unsigned number_in(const char* variable, std::string_view digits) {
  if (const auto number = launch::parse_number(digits)) return *number;
  throw Error(Status::kBadOption, fmt::format("{}='{}' is no number", variable, digits));
}

}  // namespace

void check(Place place) {
  if (place.rank < place.size) return;
  throw Error(Status::kBadOption, fmt::format("rank {} of {} processes: ranks are counted from 0",
                                              place.rank, place.size));
}

std::optional<Place> place_in_environment() {
  for (const Names& names : kNames) {
    const char* const rank = std::getenv(names.rank);
    const char* const size = std::getenv(names.size);
    if (&names == kNames && (rank == nullptr) != (size == nullptr)) {
      throw Error(Status::kBadOption, "PULLMAN_RANK and PULLMAN_SIZE belong together");
    }
    if (rank == nullptr || size == nullptr) continue;
    const Place place{number_in(names.rank, rank), number_in(names.size, size)};
    check(place);
    return place;
  }
  return std::nullopt;
}

}  // namespace pullman::world
