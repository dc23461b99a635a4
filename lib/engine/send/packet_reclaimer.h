// Packets that are needed no longer, or elsewhere: out of the channels they wait in, and back to
// the pool.
#pragma once

#include <cstddef>

#include "channel/packet.h"
#include "engine/peer/peer_queries.h"
#include "engine/send/ready_peers.h"

namespace pullman::engine {

// Unanswered questions that are remembered on a rail that was left: an answer may be late.
inline constexpr std::size_t kProbesKept = 4;

// It asks what has arrived, and has nothing else to deliver. Null: it does not.
inline bool is_probe(const Packet* packet) {
  return packet != nullptr && packet->is_probe && !packet->is_path_probe;
}
// A packet that waits in its channel waits there no longer.
inline void withdraw(const Rail& rail, Packet& packet) {
  rail.nic->channel(packet.channel).withdraw(packet);
}
// The peer is to be told our NICs anew.
void tell_nics(Peer& peer, ReadyPeers& ready);

class PacketReclaimer {
 public:
  PacketReclaimer(channel::PacketPool& packets, ReadyPeers& ready)
      : packets_(packets), ready_(ready) {}

  // One that was acked, or is not needed again.
  void release(const Rail& rail, Packet& packet);
  // All of a peer that has ended.
  void take_back_all(Peer& peer);
  // Packets that wait in the rail's channels count as sent, and as lost when that is found.
  void pull_out(Rail& rail);
  // Probes that had no answer; the newest `kept` stay. A rail that is not used has nothing else in
  // flight, or lost.
  void drop_probes(Rail& rail, std::size_t kept = 0);
  // If a packet that is overdue, or given up, told our NICs: the peer that was to hear where we are
  // cannot answer before. It is told anew, unless a newer list has been.
  void repeat_nics(const Packet& packet, Peer& peer);

 private:
  void take_back(Rail& rail);
  void take_back(Peer& peer, channel::PacketQueue& queue);

  channel::PacketPool& packets_;
  ReadyPeers& ready_;
};

}  // namespace pullman::engine
