// Writes what passes on the network, decoded, and what programs do: for people who replay a seed.
#pragma once

#include <cstdio>
#include <string>

#include "sim/wire.h"

namespace pullman::sim {

// One line: time, hosts, channel, header, frames, fate.
std::string describe(const Passing& passing);

class Trace {
 public:
  explicit Trace(std::FILE* out) : out_(out) {}
  bool on() const { return out_ != nullptr; }
  void packet(const Passing& passing);
  void note(Instant now, const std::string& text);

 private:
  std::FILE* out_;  // null: silent
};

}  // namespace pullman::sim
