// Writes what passes on the network, decoded, and what programs do, for the replay of a seed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/wire.h"

namespace pullman::sim {

// Returns one line: time, hosts, channel, header, frames, fate.
std::string describe(const Passing& passing);

// Writes the datagrams that hosts sent, with the keys to open them: a line `key HEX` for each key,
// then a line `HOST HEX` for each datagram.
class Capture {
 public:
  // `out` is null: writes nothing.
  Capture(std::FILE* out, const std::vector<std::uint64_t>& job_keys);
  bool on() const { return out_ != nullptr; }
  void packet(const Passing& passing);

 private:
  std::FILE* out_;
};

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
