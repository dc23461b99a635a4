#include "standin/world.h"

#include <cstdio>
#include <cstdlib>

#include "standin/domain.h"
#include "standin/endpoint.h"

namespace pullman::standin {

World& world() {
  static World the_only_one;
  return the_only_one;
}

World::World() {
  controls.set_link = [](bool up) {
    const Locked locked;
    for (Domain* domain : world().domains) domain->report_link(up);
  };
}

void World::fault(const char* rule) {
  if (!controls.count_faults) {
    std::fprintf(stderr, "standin: fault: %s\n", rule);
    std::abort();
  }
  if (controls.tallies.faults++ == 0) controls.tallies.first_fault = rule;
}

void World::work() {
  for (Endpoint* endpoint : endpoints) endpoint->transmit_posted();
  for (Endpoint* endpoint : endpoints) endpoint->deliver_arrived();
}

bool demand(bool good, const char* rule) {
  if (!good) world().fault(rule);
  return good;
}

}  // namespace pullman::standin

extern "C" [[gnu::visibility("default")]] pullman::standin::Controls* standin_controls() {
  return &pullman::standin::world().controls;
}
