// Sends one packet on the channel it belongs to, numbered by its link, with a due ACK piggybacked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/nics/nic_table.h"
#include "engine/peer/peer_table.h"
#include "engine/send/ack_scheduler.h"
#include "pullman/config.h"
#include "wire/frame.h"

namespace pullman::engine {

// Whether a packet waits in the channel for others to leave with.
enum class Leaves : std::uint8_t { kInBatch, kAlone };

// Returns the rail's channel; null if it takes nothing now.
inline Channel* with_room(const Rail& rail, ChannelKind kind) {
  Channel& channel = rail.nic->channel(kind);
  return channel.room() != 0 || channel.flush() ? &channel : nullptr;
}

class PacketSender {
 public:
  PacketSender(const Config& config, PeerTable& peers, NicTable& nics,
               const CreditAllocator& credits, AckScheduler& acks)
      : checksum_(config.checksum),
        tiny_bytes_(config.tiny_bytes),
        peers_(peers),
        nics_(nics),
        credits_(credits),
        acks_(acks) {}

  // Returns the channel for a packet. Tiny messages take the command channel. Others take the data
  // channel, as do their last few bytes: there these come behind the rest, and their ACK tells what
  // became of it. A tiny message takes the data channel, too, if packets wait there, so that it
  // does not overtake what must match first.
  ChannelKind kind_for(const Rail& rail, const Packet& packet, const Channel& data) const {
    constexpr std::size_t kOverhead = wire::kHeaderBytes + wire::kMessageBytes;
    const bool tiny =
        packet.payload == nullptr && !wire::begins_with_chunk(packet.body()) &&
        packet.size() <= std::min<std::size_t>(tiny_bytes_ + kOverhead, rail.command_bytes);
    return tiny && data.waiting() == 0 ? ChannelKind::kCommand : ChannelKind::kData;
  }
  // Returns that channel; null if it has no room now.
  Channel* channel_for(const Rail& rail, const Packet& packet) const {
    return with_room(rail, kind_for(rail, packet, data(rail)));
  }
  // Numbers the packet and posts it. The link must have a number for it, and the channel room.
  void post(Instant now, Rail& rail, Packet& packet, Channel& channel, wire::PacketType type,
            Leaves how = Leaves::kInBatch);
  // Numbers a run of chunks, which the caller hands to the data channel.
  void stamp(Instant now, Rail& rail, channel::Run& run);
  // Sends a packet of a connectivity check, which has no number and is not retransmitted: if the
  // NIC has no room it counts as lost. `key` is which of the job's keys; nothing: the peer's.
  void send_check(const Rail& rail, wire::CheckSize size, std::span<std::byte> packet,
                  std::optional<std::uint8_t> key = {}) const;

 private:
  void note_sent(const Rail& rail, std::size_t packets, std::size_t bytes);

  const bool checksum_;
  const std::size_t tiny_bytes_;
  PeerTable& peers_;
  NicTable& nics_;
  const CreditAllocator& credits_;
  AckScheduler& acks_;
};

}  // namespace pullman::engine
