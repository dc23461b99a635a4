// What an engine shares with a peer on its host, or has tried to.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"
#include "engine/local/memory_rail.h"
#include "shm/segment.h"

namespace pullman::engine {

enum class MemoryState : std::uint8_t {
  kOffered,  // the peer has been told of it, and has not joined yet: records may come already
  kActive,   // both ends have joined: packets leave by it
  kLeft,     // there is none: it could not be had, or it has ended
};

struct MemoryLink {
  MemoryState state = MemoryState::kLeft;
  bool collect_due = false;  // what the peer has read was not taken back last turn
  bool wake_due = false;     // the peer sleeps, and no NIC could wake it yet
  // Since then the next record could not be handled: there is no memory for it, or its bytes could
  // not be read.
  Instant stuck_since = kNever;
  bool is_stuck() const { return stuck_since != kNever; }
  shm::Secret secret{};
  std::optional<MemoryRail> rail;  // but for kLeft
  std::uint64_t sent = 0;          // packets
};

}  // namespace pullman::engine
