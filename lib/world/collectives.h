// What all processes of a world do together, along a tree (tree.h): each talks to its parent and
// its children only, so few processes are connected for it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "world/bytes.h"
#include "world/current_call.h"
#include "world/mail.h"
#include "world/place.h"
#include "world/roster.h"

namespace pullman::world {

class Collectives {
 public:
  Collectives(Mail& mail, Roster& roster, Place place)
      : mail_(mail), roster_(roster), rank_(place.rank), size_(place.size) {}

  void barrier();
  std::vector<Bytes> allgather(std::span<const std::byte> card);
  SharedBytes broadcast(unsigned root, SharedBytes message);

  // For any thread.
  const CurrentCall& current() const { return current_; }

 private:
  // Numbers the call, as all processes do. After one that failed nobody knows who has which number.
  class Call;

  // Passes a message on to the children, and returns it; all but the root have it from their
  // parent.
  SharedBytes pass_down(std::uint32_t call, unsigned root, SharedBytes message);

  Bytes receive(unsigned from, Kind kind, std::uint32_t call);
  void send(unsigned to, Kind kind, std::uint32_t call, Bytes letter);

  Mail& mail_;
  Roster& roster_;
  const unsigned rank_;
  const unsigned size_;
  std::uint32_t calls_ = 0;
  bool failed_ = false;
  CurrentCall current_;
};

}  // namespace pullman::world
