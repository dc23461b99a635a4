// pullman-info --svg: a picture of this host, its NUMA nodes with their processors, the NICs at
// each, which of them are used, and the rails to a peer.
#pragma once

#include <string>
#include <vector>

#include "info/inventory.h"
#include "pullman/rails.h"

namespace info {

// Where rails lead; no peer: there are none.
struct PeerRails {
  std::string peer;
  std::vector<pullman::RailView> rails;
};

// Returns the graph, for draw(). `driver` is the one that is used.
std::string host_picture(const Inventory& inventory, const std::string& driver,
                         const PeerRails& to);

}  // namespace info
