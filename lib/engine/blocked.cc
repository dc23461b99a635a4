// Peers that may send nothing more, since messages that nobody receives hold all the memory they
// may have here: they go on when some comes back; and a program that waits for one meanwhile is
// told, or it would wait for ever.
#include "base/log.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

// False: it names a limit that it was never told.
bool Engine::Impl::handle_blocked(Instant now, Peer& peer, std::uint64_t limit) {
  const bool had_others = reserve_.any_blocked();
  if (!peer.inbox.handle_blocked(limit)) return false;
  if (!had_others) standstill_.begin(now, moved_so_far());
  return true;
}

// All that the program has got done.
std::uint64_t Engine::Impl::moved_so_far() const {
  return inbox_counters_.messages + inbox_counters_.caught_up + stats_.messages_sent;
}

void Engine::Impl::look_after_blocked(Instant now) {
  if (reserve_.take_news()) {
    reserve_.for_each_blocked([this](PeerId id) {
      Peer* peer = peers_.find(id);
      if (peer == nullptr || !peer->inbox.is_blocked()) return false;
      if (peer->inbox.has_frames()) mark_ready(*peer);
      return true;
    });
  }
  if (now < standstill_.due() || !standstill_.look(now, moved_so_far())) return;
  bool filling = false;  // a long message is on its way
  peers_.for_each([&](const Peer& peer) { filling = filling || peer.inbox.filling() != 0; });
  if (!filling) end_receives_of_blocked();
}

void Engine::Impl::end_receives_of_blocked() {
  reserve_.for_each_blocked([this](PeerId id) {
    const Peer* peer = peers_.find(id);
    if (peer == nullptr || !peer->inbox.is_blocked()) return false;
    log().warn(
        "{} can send nothing more: {} bytes of its messages, which nobody receives, use all the "
        "memory that it may have here (unexpected_bytes = {}); receives that wait for it end",
        nic::to_string(peer->command_address), peer->inbox.charged(), config_.unexpected_bytes);
    fail_receives(id, Status::kNoMemory);
    return true;
  });
  if (reserve_.any_blocked()) fail_receives(kAnyPeer, Status::kNoMemory);
}

}  // namespace pullman::engine
