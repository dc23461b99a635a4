// Writes what passes on the network, decoded, and what programs do, for the replay of a seed.
#pragma once

#include <cstdio>
#include <string>

#include "sim/wire.h"

namespace pullman::sim {

// Returns one line: time, hosts, channel, header, frames, fate.
std::string describe(const Passing& passing);

class Trace {
 public:
  explicit Trace(std::FILE* out) : out_(out) {}
  bool on() const { return out_ != nullptr; }
  void packet(const Passing& passing);
  void note(Instant now, const std::string& text);

 private:
  std::FILE* out_;  // null: writes nothing
};

}  // namespace pullman::sim
