// The machine the stand-in's objects live in: its rules, and what all of them share.
//
// One per process, because libfabric's entry points have no object to hang it on. One lock guards
// it all: every entry point takes it first (Locked).
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "standin/controls.h"

namespace pullman::standin {

struct Domain;
struct Endpoint;

class World {
 public:
  World();

  Controls controls;
  std::vector<Endpoint*> endpoints;  // enabled
  std::set<Domain*> domains;

  // A rule was broken.
  void fault(const char* rule);
  // Runs an order down: true if it stands.
  static bool take(unsigned& order) { return order > 0 && order-- > 0; }
  // The NICs work: what was posted leaves, what has arrived is delivered. On hardware this needs
  // nobody's call; here it happens whenever somebody reads a completion queue.
  void work();

  std::mutex mutex;
};

World& world();

// Held by an entry point for its duration.
class Locked {
 private:
  std::scoped_lock<std::mutex> lock_{world().mutex};
};

// Faults unless `good`; its value.
bool demand(bool good, const char* rule);

// An entry point for what this provider does not do; any signature.
template <auto Result, typename R, typename... Arguments>
R refuse(Arguments...) {
  return static_cast<R>(Result);
}

// Counts an object of the caller's, from opening to closing.
class Counted {
 public:
  Counted() { ++world().controls.open_objects; }
  ~Counted() { --world().controls.open_objects; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

}  // namespace pullman::standin
