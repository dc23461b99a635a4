// The matchers of all spaces, and operations on the receives of all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "message/match/matcher.h"
#include "message/match/space_matchers.h"
#include "pullman/request.h"
#include "pullman/status.h"

namespace pullman::message {

class MatcherTable {
 public:
  // Returns null if no message of that space has come and no receive of it was posted.
  Matcher* find(std::uint8_t space) { return space == 0 ? &first_ : others_.find(space); }
  // Returns the matcher of the receive's space, which exists.
  Matcher& of(Request& receive) { return *find(Operation::of(receive).special.wire_kind); }
  bool make(std::uint8_t space) { return space == 0 || others_.make(space); }

  // Fails the posted receives that name this peer, or kAnyPeer; returns how many.
  std::size_t fail_receives(PeerId from, Status why);
  void fail_all_receives(Status why);
  std::size_t receives_posted() const;
  // The same without those of the last space, which is the library's own (pullman/world.h).
  std::size_t receives_of_program() const;
  bool any_receive_from(PeerId peer) const;
  // Calls visit(source, order) for each posted receive that names a source.
  template <typename Visit>
  void for_each_source(Visit&& visit) const {
    for_each([&](const Matcher& matcher) { matcher.for_each_source(visit); });
  }

  // For the inboxes, which choose a message's matcher by its kind.
  Matcher& first() { return first_; }
  SpaceMatchers& others() { return others_; }

 private:
  template <typename Visit>
  void for_each(Visit&& visit) {
    visit(first_);
    others_.for_each(visit);
  }
  template <typename Visit>
  void for_each(Visit&& visit) const {
    visit(first_);
    others_.for_each(visit);
  }

  Matcher first_;  // of space 0
  SpaceMatchers others_;
};

}  // namespace pullman::message
