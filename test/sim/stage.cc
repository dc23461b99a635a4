#include "sim/stage.h"

#include <algorithm>

namespace pullman::sim {

bool Stage::step(Instant limit) {
  Instant next = std::min(limit, network_.next_event());
  for (const auto& node : nodes_) next = std::min(next, node->wake());
  if (next == kNever) return false;
  network_.advance(next);
  for (const auto& node : nodes_) {
    if (node->wake() > network_.now()) continue;
    node->turn();
    if (program_) program_(*node);
  }
  return true;
}

}  // namespace pullman::sim
