// The cards of a job, which its launcher has.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "launch/launcher.h"
#include "pullman/context.h"
#include "world/card.h"

namespace pullman::world {

class LauncherCards {
 public:
  LauncherCards(launch::Launcher& launcher, Context& context, std::chrono::seconds patience);

  // Tells the launcher the card of this process. Throws Error.
  void put(std::span<const std::byte> card);
  // Returns what a card says, and has packets moved while it waits for a process that starts late,
  // where the launcher lets it. Throws Error.
  Addresses get(unsigned rank);

 private:
  launch::Launcher& launcher_;
  Context& context_;
  const std::chrono::seconds patience_;
  const std::string name_;  // under which the launcher has them
};

}  // namespace pullman::world
