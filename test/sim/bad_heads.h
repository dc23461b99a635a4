// Sends neighbours what is no relayed packet, or one that no process can use (wire.md 13). Its own
// origin is true: who lies about that misleads what goes to others, which no hop can know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/random.h"
#include "pullman/request.h"
#include "sim/node.h"

namespace pullman::sim {

class BadHeads {
 public:
  // `chance`, in percent, of each call of meddle().
  BadHeads(Node& node, std::uint64_t chance, std::uint64_t seed)
      : node_(node), chance_(chance), random_(seed) {}

  // May send something to the peer, whose process has a relay, on its way to one of the addresses.
  void meddle(PeerId peer, const std::vector<nic::Address>& addresses);
  // Forgets what is done. All is when the process has ended.
  void reap();
  std::size_t pending() const { return sent_.size(); }

 private:
  struct Sent {
    Request request;
    std::vector<std::byte> bytes;
  };

  std::vector<std::byte> draw(const nic::Address& to);

  Node& node_;
  const std::uint64_t chance_;
  Random random_;
  std::deque<Sent> sent_;
};

}  // namespace pullman::sim
