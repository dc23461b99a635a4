// Makes datagrams that no host sent: random bytes, replays, misrouted copies, forgeries.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "sim/wire.h"

namespace pullman::sim {

// Where datagrams can be sent.
struct World {
  std::size_t hosts = 0;
  std::size_t nics = 1;  // the most of any host
};

class NoiseMaker {
 public:
  struct Injection {
    Endpoint to;
    std::vector<std::byte> bytes;
  };

  // Sees a datagram that was sent, and may inject one of its own.
  std::optional<Injection> hear(Random& random, const World& world, const Passing& passing);

  Noise chances;

 private:
  void remember(Random& random, const Passing& passing);

  std::vector<Injection> memory_;  // datagrams to replay
};

}  // namespace pullman::sim
