// What an engine's components share: its configuration, its identity, and the pools and counters
// that all peers draw from. Bounded by the configuration; nothing here acts on a peer.
#pragma once

#include <cstdint>

#include "base/keyed_random.h"
#include "base/reused_memory.h"
#include "channel/packet.h"
#include "engine/peer/alarms.h"
#include "engine/peer/peer_table.h"
#include "message/match/matcher_table.h"
#include "message/reserve.h"
#include "message/rx/regions.h"
#include "pullman/config.h"
#include "pullman/stats.h"
#include "reliability/hotel.h"

namespace pullman::engine {

// What the engine draws from, and is told, to be told apart from others.
struct Identity {
  KeyedRandom::Key key{};
  std::uint64_t host = 0;  // the same for all processes of a host; 0: not known (wire.md 5.11)
};

struct EngineResources {
  // `largest_packet`: of any NIC, in bytes.
  EngineResources(const Config& config, const Identity& identity, std::size_t largest_packet);
  EngineResources(const EngineResources&) = delete;
  EngineResources& operator=(const EngineResources&) = delete;

  const Config config;
  KeyedRandom random;
  const std::uint64_t epoch;  // this incarnation
  const std::uint64_t host;   // of this process

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
  const std::uint64_t window;          // unexpected bytes of one peer before it is told more
  message::Reserve reserve;            // beyond the peers' own shares
  const std::uint32_t eager_bytes;     // of one message, before it is granted
  ReusedMemory held;                   // messages that have begun or wait to be taken
  Slab<message::ShortMessage> shorts;  // the same of short ones
  const message::InboxResources inbox;
  const message::OutboxResources outbox;

  Alarms alarms;
  PeerTable peers;
  Stats stats;
};

}  // namespace pullman::engine
