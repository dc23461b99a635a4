// Receives many packets of one long message at once. A burst of kernel UDP is up to 44 packets,
// nearly always consecutive, with one CHUNK of one message each. What the first of them needs to be
// judged, found and noted, the others need only once together (decision 0005).
#include "engine/receiver.h"

namespace pullman::engine {

// Takes the packets behind the first of a batch, which was just accepted, as long as that comes to
// the same as handling each alone: nothing in them is new but bytes and numbers that follow
// directly. Returns how many it took; the rest is handled one by one.
std::size_t Receiver::take_run(Instant now, const wire::PacketHeader& first,
                               std::span<const nic::Incoming> batch) {
  wire::ChunkRun run;
  if (!run.begin(batch.front().bytes, first, frames_)) return 0;
  Peer* peer = peers_.find(run.last().to);
  Rail* rail = peer == nullptr ? nullptr : peer->rail(run.last().rail);
  if (rail == nullptr || !in_order_behind(*rail, run.last())) return 0;
  auto bytes = peer->inbox.in_order_behind(frames_.front());
  std::uint32_t count = 0;
  for (const nic::Incoming& incoming : batch.subspan(1)) {
    const auto data = protection_ == nullptr ? run.next(incoming.bytes, bytes.most())
                                             : open_next(run, *rail, incoming.bytes, bytes.most());
    if (data.empty()) break;
    bytes.put(data);
    ++count;
  }
  if (count == 0) return 0;
  peer->inbox.handle_in_order(bytes);
  rail->link.handle_run(now, run.last(), count, clock_.poll_gap());
  if (peer->inbox.has_frames() || peer->outbox.has_packets()) ready_.mark(*peer);
  acks_.schedule(now, *rail);
  stats_.packets_received += count;
  return count;
}

// Does the same as ChunkRun::next() for a protected packet, which must open. Of an encrypted one
// what is compared is in clear.
std::span<const std::byte> Receiver::open_next(wire::ChunkRun& run, Rail& rail,
                                               std::span<const std::byte> datagram,
                                               std::uint64_t most) {
  const auto packet = wire::packet_in(datagram);
  const auto data = run.data_of_next(packet, most);
  wire::PacketHeader header = run.last();
  ++header.number;
  if (data.empty() || !protection_->open(rail, header, datagram)) return {};
  run.take(packet, data.size());
  return data;
}

// Returns whether a packet that repeats this one's ack, with the next number, would be new, and
// bring nothing but its frames.
bool Receiver::in_order_behind(const Rail& rail, const wire::PacketHeader& header) const {
  const Peer& peer = rail.peer;
  const auto& acks = rail.link.acks();
  return peer.phase == Phase::kConnected && peer.introduced && peer.said == nullptr &&
         (!header.has(wire::kFlagAck) || rail.link.repeats_ack(header) ||
          acks_.repeats_deferred(rail, header)) &&
         !acks.has_gap() && acks.next() == acks.number_of(header) + 1;
}

}  // namespace pullman::engine
