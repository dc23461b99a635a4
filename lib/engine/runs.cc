// Long messages leave as runs: chunks that are cut, numbered and handed to the port together.
#include "base/check.h"
#include "channel/run.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using channel::Run;

// Sends up to `most` chunks of what the peer has; how many. 0: packets one by one are what can be
// sent now, if anything. What the port does not take is due again as single packets.
std::size_t Engine::Impl::send_runs(Instant now, Peer& peer, std::size_t most) {
  Channel& channel = data();
  channel.flush();
  if (channel.waiting() > 0) return 0;
  most = std::min<std::size_t>(most, peer.link.permits());
  const bool equal = channel.port().limits().bursts;
  std::array<Run*, Channel::kBatch / message::Outbox::kLeastRun> runs;
  std::size_t count = 0;
  std::size_t chunks = 0;
  while (most - chunks >= message::Outbox::kLeastRun) {
    Run* run = peer.outbox.next_run(most - chunks, equal);
    if (run == nullptr) break;
    stamp_run(now, peer, *run);
    for (std::uint32_t i = 0; i < run->count; ++i) {
      outgoing_[chunks++] = {run->head_of(i), run->payload_of(i), peer.data_to};
    }
    runs[count++] = run;
  }
  std::size_t taken = channel.send_at_once({outgoing_.data(), chunks});
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t of_run = runs[i]->count;
    if (taken < of_run) peer.link.take_back(*runs[i], static_cast<std::uint32_t>(taken));
    taken -= std::min<std::size_t>(taken, of_run);
  }
  return chunks;
}

void Engine::Impl::stamp_run(Instant now, Peer& peer, Run& run) {
  run.channel = ChannelKind::kData;
  const bool owed = peer.link.ack_need() != reliability::AckNeed::kNone;
  peer.link.stamp_run(now, peer.theirs, credit_, run);
  if (config_.checksum) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      wire::seal(run.head_of(i), run.payload_of(i));
    }
  }
  if (owed) note_ride(peer);
  stats_.packets_sent += run.count;
}

}  // namespace pullman::engine
