// What becomes of a packet that is protected in another way than this engine protects packets
// (wire.md 12.7). It is never accepted. If it is a call from a process of the job its sender is
// told, and a call of ours that is answered so ends: else a job of which half is configured
// otherwise only stands still.
#pragma once

#include <cstddef>
#include <span>

#include "base/time.h"
#include "engine/peer/peer_table.h"
#include "engine/security/packet_protection.h"
#include "engine/session/peer_lifecycle.h"
#include "engine/session/stateless_replies.h"
#include "wire/frame.h"

namespace pullman::engine {

class ProtectionMismatch {
 public:
  // `protection` is null if packets are not protected: then nobody can be told from others.
  ProtectionMismatch(PacketProtection* protection, const PeerTable& peers, const NicTable& nics,
                     StatelessReplies& replies, PeerLifecycle& lifecycle)
      : protection_(protection),
        peers_(peers),
        nics_(nics),
        replies_(replies),
        lifecycle_(lifecycle) {}

  // Handles the datagram, which came by the NIC of that slot. `frames` is free to be read into.
  void handle(Instant now, std::size_t slot, std::span<const std::byte> datagram,
              wire::FrameList& frames);

 private:
  void handle_refusal(const wire::ConnectionId& to);

  PacketProtection* const protection_;
  const PeerTable& peers_;
  const NicTable& nics_;
  StatelessReplies& replies_;
  PeerLifecycle& lifecycle_;
};

}  // namespace pullman::engine
