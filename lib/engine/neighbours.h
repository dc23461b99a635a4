// What the relay, which is above the engine, must know of it: which peers are reached without the
// relay, and which only by it. Counts what the relay does.
#pragma once

#include <optional>

#include "engine/session/peer_lifecycle.h"

namespace pullman::engine {

class Neighbours {
 public:
  Neighbours(const PeerTable& peers, const NicTable& nics, PeerLifecycle& lifecycle,
             std::uint64_t epoch, Stats& stats)
      : peers_(peers), nics_(nics), lifecycle_(lifecycle), epoch_(epoch), stats_(stats) {}

  // Returns a number that names this engine, and no other.
  std::uint64_t id() const { return epoch_; }
  Stats& stats() { return stats_; }

  // Returns whether packets to that peer leave by another way than the relay, or will once it has
  // answered. A suspect rail does not count beside a relayed one, which would take them.
  bool is_neighbour(PeerId peer) const;
  // Returns the neighbour at that address of a command channel.
  std::optional<PeerId> neighbour_at(const nic::Address& address) const;
  nic::Address address_of(PeerId peer) const;
  // Returns whether a NIC of that peer has that address, as far as it has told us.
  bool is_at(PeerId peer, const nic::Address& address) const;
  // Returns whether this is the address of the command channel of one of our NICs.
  bool is_own(const nic::Address& address) const { return nics_.is_own_port(address); }
  // Returns how our NICs, without the relay, reach that address at best.
  nic::Reach reach(const nic::Address& address) const { return nics_.reach(address); }

  // Disconnects the peers that only the relay reaches, since it will send nothing once the engine
  // closes.
  void disconnect_relayed(Instant now);
  // Returns whether there are any that have not ended.
  bool any_relayed() const;

 private:
  const PeerTable& peers_;
  const NicTable& nics_;
  PeerLifecycle& lifecycle_;
  const std::uint64_t epoch_;
  Stats& stats_;
};

}  // namespace pullman::engine
