// Shows the engine to the outside: states, statistics, the audit, the dump. Changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/frames/ack_handler.h"
#include "engine/resources.h"
#include "engine/transmitter.h"
#include "pullman/rails.h"
#include "pullman/types.h"

namespace pullman::engine {

// Counts that must balance whatever happens; the simulator's oracles check them after every step.
struct Audit {
  std::size_t packets_in_flight = 0;  // as the links' windows count them
  std::size_t hotel_guests = 0;       // packets checked in; always equals packets_in_flight
  std::size_t packets_taken = 0;      // taken from the packet pools
  std::size_t packets_accounted = 0;  // found in windows, queues and channels; equals packets_taken
  std::uint64_t unexpected_bytes = 0;  // charged to peers; at most Config::unexpected_bytes
  std::size_t sends_pending = 0;       // requests in outboxes
  std::size_t receives_posted = 0;     // requests in the matcher or being filled
  std::size_t windows_in_use = 0;      // links that hold a window
  // What probes a relayed rail that is down, which it stays if there is no other way to the peer.
  std::size_t relay_probes = 0;        // packets in flight
  std::size_t relay_windows = 0;       // windows of such rails
  std::uint64_t rails_blamed = 0;      // rails left because they were silent, since the start
  std::size_t peers_inconsistent = 0;  // peers whose state does not fit their phase; always 0
  // Both are 0 after a turn: the list of ready peers holds exactly the peers that can be served.
  std::size_t peers_unlisted = 0;     // with work, credit and window, but not in the list
  std::size_t peers_listed_idle = 0;  // in the list, without one of these
};

// The state of the link to a peer at this moment.
struct LinkView {
  Duration rtt{};                // smoothed; 0 before the first sample
  std::size_t packet_bytes = 0;  // largest packet, as far as the path is known
  std::uint32_t window = 0;      // congestion window, packets
  std::uint32_t in_flight = 0;   // packets
};

class Inspector {
 public:
  Inspector(const EngineResources& resources, const NicTable& nics, const RailManager& rails,
            const AckHandler& ack_handler, const Transmitter& transmitter)
      : resources_(resources),
        nics_(nics),
        rails_(rails),
        ack_handler_(ack_handler),
        transmitter_(transmitter) {}

  PeerState peer_state(PeerId peer) const;
  Status peer_status(PeerId peer) const;
  // Returns whether the peer is this process.
  bool is_self(PeerId peer) const;
  // Returns whether packets to the peer leave through memory.
  bool shares_memory(PeerId peer) const;
  // Returns the peers that are connected, `most` at most, and the address a peer was called at.
  std::vector<PeerId> connected_peers(std::size_t most) const;
  std::string address_of(PeerId peer) const;
  std::optional<LinkView> link(PeerId peer) const;
  // Returns all rails of a peer, rail 0 first; none if the peer is not known.
  std::vector<RailView> rails(Instant now, PeerId peer) const;
  Stats stats() const;
  Audit audit() const;
  std::string dump() const;

 private:
  std::size_t packets_in_flight() const;

  const EngineResources& resources_;
  const NicTable& nics_;
  const RailManager& rails_;
  const AckHandler& ack_handler_;
  const Transmitter& transmitter_;
};

}  // namespace pullman::engine
