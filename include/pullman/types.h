// Small words of the public API: tags and peers.
#pragma once

#include <cstdint>

namespace pullman {

// A message's label. A receive matches when (tag ^ wanted) & ~ignore is 0.
using Tag = std::uint64_t;

// One remote process (one incarnation of it), as this context knows it. A value: copy it freely.
// Its generation makes an old handle fail with kUnknownPeer rather than name whoever has the index
// now.
struct PeerId {
  std::uint32_t index = 0xFFFFFFFF;
  std::uint32_t generation = 0;
  bool operator==(const PeerId&) const = default;
};

// As the source of a receive: whoever sends.
inline constexpr PeerId kAnyPeer{};

enum class PeerState : std::uint8_t {
  kUnknown,     // no such peer
  kConnecting,  // no answer yet; sends queue and leave with the answer
  kConnected,   // messages flow
  kDraining,    // this side is closing: what was accepted is being delivered
  kGone,        // closed, restarted, died or unreachable: operations fail with peer_status()
};

}  // namespace pullman
