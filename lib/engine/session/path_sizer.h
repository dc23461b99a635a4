// Carries out what reliability/path_size.h decides: how long packets may be on the way to a peer.
#pragma once

#include "engine/send/packet_reclaimer.h"
#include "engine/send/packet_sender.h"
#include "engine/session/peer_lifecycle.h"

namespace pullman::engine {

class PathSizer {
 public:
  PathSizer(Stats& stats, PacketSender& sender, PacketReclaimer& reclaimer,
            PeerLifecycle& lifecycle)
      : stats_(stats), sender_(sender), reclaimer_(reclaimer), lifecycle_(lifecycle) {}

  // Applies the size of the path, which may have changed. If packets of that size were lost, the
  // size that the network reports (ICMP) counts, too.
  void settle(Instant now, Rail& rail);
  // Sends a packet of the size that is to be tried, if there is other work, room and a packet for
  // it; else the next turn tries again.
  void send_probe(Instant now, Rail& rail);
  // Releases a lost probe, which has nothing to deliver: its question has been answered, or will be
  // asked again.
  void drop_lost_probe(Instant now, Rail& rail, Packet& probe);
  // A fragment of the packet, which was too long for the path, has been acked: makes the rest due.
  void resume(Rail& rail, Packet& packet);

 private:
  Stats& stats_;
  PacketSender& sender_;
  PacketReclaimer& reclaimer_;
  PeerLifecycle& lifecycle_;
};

}  // namespace pullman::engine
