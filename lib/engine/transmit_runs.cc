// Sends long messages as runs: chunks that are cut, numbered and handed to the port together.
#include <algorithm>

#include "channel/run.h"
#include "engine/transmitter.h"

namespace pullman::engine {

using channel::Run;
using Heads = message::Outbox::Heads;

namespace {

// Up to this many packets that wait leave with the run that follows. The first packet of a message
// with immediate data is such a packet.
constexpr std::size_t kWithRun = 4;

// The packets that a call offers to the port. A thread has one such array for all its engines,
// since it is then in the cache; nothing stays there between two calls.
thread_local std::array<nic::Outgoing, Channel::kBatch> offered;

// Writes what the port is to send: all chunks of the run.
void write_outgoing(const Run& run, nic::Destination to, nic::Outgoing* out) {
  const std::byte* head = run.bytes;
  const std::size_t stride = run.stride();
  const std::byte* payload = run.payload;
  for (std::uint32_t i = 0; i + 1 < run.count; ++i) {
    out[i] = {{head, run.used}, {payload, run.payload_bytes}, to};
    head += stride;
    payload += run.payload_bytes;
  }
  const std::uint32_t last = run.count - 1;
  out[last] = {run.head_of(last), run.payload_of(last), to};
}

void seal(const Run& run) {
  for (std::uint32_t i = 0; i < run.count; ++i) wire::seal(run.head_of(i), run.payload_of(i));
}

// Returns the longest burst for the link. A burst travels as one: a slow link is busy with it while
// all else waits, and idle until the next one comes. So several bursts should be in flight, or
// bursts should take next to no time: to a peer that answers at once, short bursts only cost more
// calls (Linux' TCP does likewise: tcp_tso_autosize(), tcp_tso_rtt_log).
std::size_t longest_burst(const reliability::Link& link) {
  constexpr std::uint32_t kUnderWay = 4;
  constexpr std::uint32_t kLeast = 4;
  constexpr Duration kNoTime = std::chrono::microseconds(50);
  const std::uint32_t window = link.congestion_window();
  const std::uint32_t part = std::max(kLeast, window / kUnderWay);
  if (!link.rtt().sampled()) return part;
  // This is the part of the window, which takes a round trip, that leaves in kNoTime.
  const auto in_no_time = static_cast<std::size_t>(window * kNoTime / link.rtt().smoothed());
  return std::clamp<std::size_t>(in_no_time, part, std::max(part, window));
}

// Returns the length of the next burst. A burst has arrived when all of it is copied at the
// receiver. If little is in flight it is short, so that both ends copy at the same time, and the
// answer to a message's first packets is on its way back before its last ones leave.
std::size_t next_burst(const reliability::Link& link, std::size_t longest) {
  constexpr std::size_t kFirst = 24;
  return std::min(longest, std::max<std::size_t>(kFirst, link.in_flight()));
}

// Does the same at the end of what there is: `most` of `left` packets are to leave, in bursts of
// `in_burst`. Few packets behind a burst cost a call of their own in any case. If both bursts are
// half as long, both ends copy at the same time, and the last one is done sooner.
std::size_t even_end(std::size_t most, std::size_t left, std::size_t in_burst) {
  constexpr std::size_t kFew = 20;
  if (in_burst == 0 || most < kFew || left <= most || left - most >= kFew) return most;
  const std::size_t last = (most - 1) % in_burst + 1;
  const std::size_t few = left - most;
  return few < last ? most - (last - few) / 2 : most;
}

// Returns whether packets should have one length: bursts are then longer, but some bytes are sent
// twice. If bursts are short all the same, the link is what is slow, and there bytes count more
// than calls.
bool worth_equal_lengths(std::size_t burst_bytes, std::size_t longest) {
  constexpr std::size_t kLeast = 32;
  return burst_bytes != 0 && longest >= kLeast;
}

// Returns how many packets leave now. Those beyond full bursts leave with what comes next: a short
// burst costs as much as a long one. `with_half`: at least half a burst leaves, too, since it would
// not wait later (waits_for_more()) and would take a call of its own.
std::size_t whole_bursts(std::size_t packets, std::size_t in_burst, bool with_half) {
  if (packets <= in_burst || in_burst == 0) return packets;
  const std::size_t rest = packets % in_burst;
  return with_half && 2 * rest >= in_burst ? packets : packets - rest;
}

}  // namespace

// Returns whether we poll about once per round trip, so that we find all that was in flight acked
// together, and cutting it into short bursts has only cost calls. It is false if the window holds
// what there is to send, or that is one message: then short bursts let both ends copy at the same
// time.
bool Transmitter::polls_infrequently(const Rail& rail) const {
  return 2 * clock_.unpolled() > rail.link.rtt().smoothed() &&
         rail.peer.outbox.several_fill(rail.link.permits());
}

// Returns whether to wait: what may leave would make a short burst, which costs as much as a long
// one, and ACKs of what is in flight will allow more.
bool Transmitter::waits_for_more(const Rail& rail) const {
  return fills_no_burst(rail) && polls_infrequently(rail);
}

// Sends up to `most` chunks of what the peer has and returns how many. 0: only single packets can
// be sent now, if anything. Chunks that the port does not take are due again as single packets.
std::size_t Transmitter::send_runs(Instant now, Rail& rail, std::size_t most) {
  const std::uint32_t full = std::uint32_t{1} << rail.module;
  if ((ports_full_ & full) != 0) return 0;
  Channel& channel = data(rail);
  if (channel.waiting() > kWithRun) {
    channel.flush();
    if (channel.waiting() > 0) return 0;
  }
  const bool seldom = polls_infrequently(rail);
  const std::size_t longest = seldom ? most : longest_burst(rail.link);
  const std::size_t next = seldom ? most : next_burst(rail.link, longest);
  most = std::min<std::size_t>({most, rail.link.permits(), next});
  const std::size_t burst_bytes = channel.port().limits().burst_bytes;
  const bool equal = worth_equal_lengths(burst_bytes, longest);
  const std::size_t in_burst = channel.packets_in_burst(rail.packet_bytes);
  Heads heads = heads_for(rail);
  most = std::min(whole_bursts(most, in_burst, seldom), channel.room());
  const std::size_t left = rail.peer.outbox.packets_left(heads);
  if (!seldom && left <= rail.link.permits()) most = even_end(most, left, in_burst);
  std::array<Run*, Channel::kBatch / message::kMinRun> runs;
  std::size_t count = 0;
  std::size_t chunks = 0;
  bool asks = false;
  while (most - chunks >= message::kMinRun) {
    Run* run = rail.peer.outbox.next_run({.max_chunks = most - chunks,
                                          .equal_lengths = equal,
                                          .shares_burst = count != 0,
                                          .heads = heads});
    if (run == nullptr) break;
    if (heads == Heads::kPiggyback) heads = Heads::kBulk;
    sender_.stamp(now, rail, *run);
    stats_.packets_sent += run->count;
    if (!seldom) rail.link.ask_if_due(*run);
    asks = asks || run->wants_ack;
    write_outgoing(*run, rail.data_to, &offered[chunks]);
    chunks += run->count;
    runs[count++] = run;
  }
  if (chunks == 0) return 0;
  // A sender that polls seldom reads the ACKs of all runs together: one ACK is enough, and those of
  // the ACK delay come with it.
  if (seldom) {
    command(rail).expect_several();
    for (std::size_t i = 0; i < count; ++i) runs[i]->wants_ack = asks && i + 1 == count;
    rail.link.ask_if_due(*runs[count - 1]);
  }
  if (checksum_) std::for_each_n(runs.begin(), count, [](Run* run) { seal(*run); });
  std::size_t taken = channel.send_at_once({offered.data(), chunks}, {runs.data(), count});
  if (taken != 0) nics_.note_moved();
  if (taken >= Channel::kBatch / 2) poller_.note_burst_sent(now);
  if (taken < chunks) ports_full_ |= full;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t of_run = runs[i]->count;
    if (taken < of_run) rail.link.take_back(*runs[i], static_cast<std::uint32_t>(taken));
    taken -= std::min<std::size_t>(taken, of_run);
  }
  return chunks;
}

// Bulk packets have no room for a checksum, nor for an ACK that is to be piggybacked.
message::Outbox::Heads Transmitter::heads_for(const Rail& rail) const {
  if (checksum_ || data(rail).port().limits().burst_bytes == 0) return Heads::kFull;
  return rail.link.ack_need() == reliability::AckNeed::kNone ? Heads::kBulk : Heads::kPiggyback;
}

}  // namespace pullman::engine
