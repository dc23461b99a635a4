#include "engine/send/ready_peers.h"

#include <iterator>

namespace pullman::engine {

void ReadyPeers::put_refused_first() {
  auto at = peers_.begin();
  for (std::size_t left = peers_.size(); left > 0; --left) {
    const auto next = std::next(at);
    if (!at->refused) peers_.splice(peers_.end(), peers_, at);
    at->refused = false;
    at = next;
  }
}

}  // namespace pullman::engine
