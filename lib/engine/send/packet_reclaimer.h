// Takes packets that are no longer needed, or needed elsewhere, out of the channels they wait in,
// and returns them to the pool.
#pragma once

#include <cstddef>

#include "channel/packet.h"
#include "engine/peer/peer_queries.h"
#include "engine/send/ready_peers.h"

namespace pullman::engine {

// Unanswered probes that stay in flight on a rail that was left: an answer may be late.
inline constexpr std::size_t kProbesKept = 4;

// Returns whether the packet only asks what has arrived (PING), and does not probe the path's size.
// Null is no probe.
inline bool is_probe(const Packet* packet) {
  return packet != nullptr && packet->is_probe && !packet->is_path_probe;
}
// Takes a packet that waits in its channel out of it.
inline void withdraw(const Rail& rail, Packet& packet) {
  rail.nic->channel(packet.channel).withdraw(packet);
}
// Makes our list of NICs due to the peer again.
void tell_nics(Peer& peer, ReadyPeers& ready);

class PacketReclaimer {
 public:
  PacketReclaimer(channel::PacketPool& packets, ReadyPeers& ready)
      : packets_(packets), ready_(ready) {}

  // Returns a packet that was acked, or is not needed again, to the pool.
  void release(const Rail& rail, Packet& packet);
  // The same for one that no channel has had.
  void release(Packet& packet) {
    ready_.note_packets_returned();
    packets_.give_back(packet);
  }
  // Takes back all packets of a peer that ends.
  void take_back_all(Peer& peer);
  // Takes packets out of the rail's channels. They count as sent, and as lost when that is found.
  void pull_out(Rail& rail);
  // Drops probes that had no answer, but for the newest `kept`. Of a rail that is not usable it
  // drops lost packets, too, which are probes or lists of NICs.
  void drop_probes(Rail& rail, std::size_t kept = 0);
  // Makes our list of NICs due again if the packet, which is overdue or given up, held the newest:
  // a peer that does not know where we are cannot acknowledge it.
  void repeat_nics(const Packet& packet, Peer& peer);

 private:
  void take_back(Rail& rail);
  void take_back(Peer& peer, channel::PacketQueue& queue);

  channel::PacketPool& packets_;
  ReadyPeers& ready_;
};

}  // namespace pullman::engine
