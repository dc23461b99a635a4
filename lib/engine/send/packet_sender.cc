#include "engine/send/packet_sender.h"

#include "channel/run.h"
#include "engine/peer/rail_choice.h"
#include "wire/check.h"

namespace pullman::engine {

using reliability::AckNeed;

// A peer with one rail has no upkeep.
inline void PacketSender::note_sent(const Rail& rail, std::size_t packets, std::size_t bytes) {
  if (rail.peer.rails != nullptr) return engine::note_sent(rail, packets, bytes);
  peers_.tally_of(rail.peer).bytes_sent += bytes;
}

void PacketSender::send_check(const Rail& rail, wire::CheckSize size, std::span<std::byte> packet,
                              std::optional<std::uint8_t> key) const {
  if (checksum_) wire::seal(packet, {});
  const bool large = size == wire::CheckSize::kLargest;
  Channel& channel = large ? data(rail) : command(rail);
  channel.send_unremembered(packet, large ? rail.data_to : rail.command_to,
                            {.peer = rail.peer.id.index, .key = key});
}

void PacketSender::post(Instant now, Rail& rail, Packet& packet, Channel& channel,
                        wire::PacketType type, Leaves how) {
  packet.channel = channel.kind();
  packet.rail = rail.number;
  const bool owed = rail.link.ack_need() != AckNeed::kNone;
  rail.link.stamp(now, type == wire::PacketType::kHello ? wire::ConnectionId{} : rail.peer.theirs,
                  credits_.credit(rail), type, packet);
  if (checksum_) [[unlikely]] {
    wire::seal({packet.bytes, packet.used}, {packet.payload, packet.payload_bytes});
  }
  const bool command = channel.kind() == ChannelKind::kCommand;
  const nic::Destination to = command ? rail.command_to : rail.data_to;
  if (how != Leaves::kAlone || channel.waiting() != 0 || !channel.send_alone(packet, to)) {
    nics_.note_posted(channel);
    channel.post(packet, to);
  }
  if (!packet.is_probe) note_sent(rail, 1, packet.size());
  if (owed) acks_.note_piggyback(rail);
}

void PacketSender::stamp(Instant now, Rail& rail, channel::Run& run) {
  run.channel = ChannelKind::kData;
  run.rail = rail.number;
  // The packet in which a message asks for its ACK leaves on one rail only, so the runs on each
  // rail ask.
  if (rail.peer.rails != nullptr) run.wants_ack = true;
  const bool owed = rail.link.ack_need() != AckNeed::kNone;
  rail.link.stamp_run(now, rail.peer.theirs, credits_.credit(rail), run);
  if (owed) acks_.note_piggyback(rail);
  note_sent(rail, run.count, run.total_bytes());
}

}  // namespace pullman::engine
