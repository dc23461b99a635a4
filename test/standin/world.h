// The machine of the stand-in's objects: its rules, and what all of them share.
//
// One per process, because libfabric's entry points have no object to hold it. One lock guards it
// all, which every entry point takes first (Locked).
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

  // Reports that a rule was broken.
  void fault(const char* rule);
  // Counts an order down; returns whether it applied.
  static bool take(unsigned& order) { return order > 0 && order-- > 0; }
  // Lets the NICs work: posted packets leave, and arrived ones are delivered. Hardware needs no
  // call for this; here every read of a completion queue does it.
  void work();

  std::mutex mutex;
};

World& world();

// Held by an entry point for its duration.
class Locked {
 private:
  std::scoped_lock<std::mutex> lock_{world().mutex};
};

// Reports a fault unless `good`; returns `good`.
bool demand(bool good, const char* rule);

// An entry point that is not supported, of any signature.
template <auto Result, typename R, typename... Arguments>
R refuse(Arguments...) {
  return static_cast<R>(Result);
}

// Counts an open object of the caller's.
class Counted {
 public:
  Counted() { ++world().controls.open_objects; }
  ~Counted() { --world().controls.open_objects; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

}  // namespace pullman::standin
