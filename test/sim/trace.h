// Writes what passes on the network, decoded, and what programs do, for the replay of a seed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "nic/trace/pcapng.h"
#include "sim/wire.h"

namespace pullman::sim {

// Returns one line: time, hosts, channel, header, frames, fate.
std::string describe(const Passing& passing);

// Writes the datagrams that hosts sent, whole, as pcapng: each port is an interface, and a comment
// says what became of a datagram that did not just arrive.
class Capture {
 public:
  // `out` is null: writes nothing.
  Capture(std::FILE* out, std::size_t hosts, std::uint8_t address_kind);
  bool on() const { return writer_.has_value(); }
  void packet(const Passing& passing);

 private:
  std::uint32_t interface_of(Endpoint at) const;

  const std::size_t hosts_;
  const std::uint8_t address_kind_;
  std::optional<nic::trace::PcapngWriter> writer_;
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
