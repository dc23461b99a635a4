#include "engine/session/pending_hello.h"

namespace pullman::engine {

void aim_answer_at_home(const Resolver& resolver, Peer& peer) {
  PendingHello& said = *peer.said;
  resolver.release(said.module, ChannelKind::kCommand, said.to);
  said.elsewhere = false;
}

void forget_hello(const Resolver& resolver, channel::PacketPool& packets, Peer& peer) {
  if (peer.said == nullptr) return;
  aim_answer_at_home(resolver, peer);
  if (peer.said->early_data != nullptr) packets.give_back(*peer.said->early_data);
  peer.said.reset();
}

}  // namespace pullman::engine
