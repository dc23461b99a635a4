// Makes the datagrams nobody sent: random bytes, replays, misrouted copies, forgeries.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "sim/wire.h"

namespace pullman::sim {

// Where datagrams can go.
struct World {
  std::size_t hosts = 0;
  std::size_t nics = 1;  // of the host that has most
};

class NoiseMaker {
 public:
  struct Injection {
    Endpoint to;
    std::vector<std::byte> bytes;
  };

  // Hears a datagram that was sent, and may answer with one of its own.
  std::optional<Injection> hear(Random& random, const World& world, const Passing& passing);

  Noise chances;

 private:
  void remember(Random& random, const Passing& passing);

  std::vector<Injection> memory_;  // what replays are made of
};

}  // namespace pullman::sim
