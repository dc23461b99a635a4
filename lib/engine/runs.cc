// Long messages leave as runs: chunks that are cut, numbered and handed to the port together.
#include "channel/run.h"
#include "engine/engine_impl.h"

namespace pullman::engine {

using channel::Run;

namespace {

// What the port is to send: all chunks of the run.
void write_outgoing(const Run& run, nic::Destination to, nic::Outgoing* out) {
  const std::byte* head = run.bytes;
  const std::byte* payload = run.payload;
  for (std::uint32_t i = 0; i + 1 < run.count; ++i) {
    out[i] = {{head, Run::kSmallBytes}, {payload, run.payload_bytes}, to};
    head += Run::kSmallBytes;
    payload += run.payload_bytes;
  }
  const std::uint32_t last = run.count - 1;
  out[last] = {run.head_of(last), run.payload_of(last), to};
}

}  // namespace

// Sends up to `most` chunks of what the peer has; how many. 0: packets one by one are what can be
// sent now, if anything. What the port does not take is due again as single packets.
std::size_t Engine::Impl::send_runs(Instant now, Peer& peer, std::size_t most) {
  if (port_full_) return 0;
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
    write_outgoing(*run, peer.data_to, &outgoing_[chunks]);
    chunks += run->count;
    runs[count++] = run;
  }
  if (chunks == 0) return 0;
  std::size_t taken = channel.send_at_once({outgoing_.data(), chunks});
  port_full_ = taken < chunks;
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
