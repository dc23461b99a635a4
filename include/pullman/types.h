// Basic types of the public API: tags and peers.
#pragma once

#include <cstdint>

namespace pullman {

// A message's label. A receive for tag `wanted` matches if (tag ^ wanted) & ~ignore is 0.
using Tag = std::uint64_t;

// A handle for one incarnation of a remote process. A value: copy it freely. The generation makes a
// stale handle fail with kUnknownPeer instead of naming the peer that has the index now.
struct PeerId {
  std::uint32_t index = 0xFFFFFFFF;  // its place in the context's table
  std::uint32_t generation = 0;      // which of those that had the place
  // Equal handles name the same incarnation.
  bool operator==(const PeerId&) const = default;
};

// As the source of a receive: any sender.
inline constexpr PeerId kAnyPeer{};

// Whether a peer is connected.
enum class PeerState : std::uint8_t {
  kUnknown,     // no such peer
  kConnecting,  // no answer yet; sends beyond the early data wait for it
  kConnected,   // messages flow
  kDraining,    // this side is closing: what was accepted is being delivered
  kGone,        // closed, restarted, died or unreachable: operations fail with peer_status()
};

}  // namespace pullman
