// Holds what an engine's components share: its configuration, its identity, and the pools and
// counters that all peers draw from. It is bounded by the configuration; nothing here acts on a
// peer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/keyed_random.h"
#include "base/reused_memory.h"
#include "channel/packet.h"
#include "crypto/secret.h"
#include "engine/peer/alarms.h"
#include "engine/peer/memory_peers.h"
#include "engine/peer/peer_table.h"
#include "message/match/matcher_table.h"
#include "message/reserve.h"
#include "message/rx/regions.h"
#include "pullman/config.h"
#include "pullman/stats.h"
#include "reliability/hotel.h"
#include "shm/pairs.h"

namespace pullman::engine {

// Tells this engine from others: the key of its random numbers, its host, and the keys of its job.
struct Identity {
  KeyedRandom::Key key{};
  std::uint64_t host = 0;  // the same for all processes of a host; 0: not known (wire.md 5.11)
  // Makes the memory that is shared with peers on the host, and outlives the engine; null: none is.
  shm::Pairs* pairs = nullptr;
  // How packets are protected, and the keys they are protected with (security/packet_protection.h).
  wire::Protection protection = wire::Protection::kOff;
  std::vector<crypto::Secret<32>> job_keys{};
};

struct EngineResources {
  // `largest_packet` is the largest packet of any NIC, in bytes.
  EngineResources(const Config& config, const Identity& identity, std::size_t largest_packet);
  EngineResources(const EngineResources&) = delete;
  EngineResources& operator=(const EngineResources&) = delete;

  const Config config;
  KeyedRandom random;
  const std::uint64_t epoch;  // names this incarnation of the process
  const std::uint64_t host;   // the host of this process
  shm::Pairs* const pairs;    // null: memory is not shared

  channel::PacketPool packets;
  reliability::Hotel<Packet> hotel;
  reliability::WindowRings rings;
  Pool<reliability::ArrivalBitmap> arrival_bitmaps;
  Pool<message::IdBitmap> id_bitmaps;
  Pool<message::ActiveSends> active_sends;
  Pool<message::SpanningMessages> spanning_messages;
  Pool<message::ActiveMessages> active_messages;
  const reliability::LinkOptions link_options;
  const reliability::LinkResources link_resources;

  message::MatcherTable matchers;
  message::Regions regions;
  message::InboxCounters inbox_counters;
  message::OutboxCounters outbox_counters;
  const std::uint64_t window;  // unexpected bytes that a peer may use before it is told of more
  message::Reserve reserve;    // unexpected bytes that are lent beyond the peers' own shares
  const std::uint32_t eager_bytes;     // that a message may send before its GRANT
  ReusedMemory held;                   // memory for messages that have begun or wait for a receive
  Slab<message::ShortMessage> shorts;  // the same for short messages
  const message::InboxResources inbox;
  const message::OutboxResources outbox;

  Alarms alarms;
  PeerTable peers;
  MemoryPeers memory_peers;
  Stats stats;
  EndedTotals ended;
};

}  // namespace pullman::engine
