// A peer lifecycle for unit tests, and the components that it calls: on one NIC without a network.
#pragma once

#include <chrono>

#include "engine/session/peer_lifecycle.h"
#include "engine_parts.h"

namespace pullman::engine {

struct LifecycleParts {
  explicit LifecycleParts(const Config& config = FakePeers::few()) : peers(nics.table, config) {}
  ~LifecycleParts() {
    lifecycle.abort();
    lifecycle.discard_all();
  }
  LifecycleParts(const LifecycleParts&) = delete;
  LifecycleParts& operator=(const LifecycleParts&) = delete;

  Alarms& alarms() { return peers.resources.alarms; }

  FakeNics nics{1};
  FakePeers peers;
  Instant now{std::chrono::seconds(1)};
  CreditAllocator credits{nics.table, now};
  PollClock clock{now};
  Resolver resolver{peers.table(), nics.table};
  ReadyPeers ready;
  AckScheduler acks{peers.resources.config, peers.resources.inbox_counters, peers.resources.stats,
                    credits};
  PacketSender sender{peers.resources.config, peers.table(), nics.table, credits, acks};
  PacketReclaimer reclaimer{peers.resources.packets, ready};
  AcceptQueue accepts{peers.resources.config, peers.table()};
  PathCheck check{peers.table(), nics.table, sender, clock, alarms(), peers.resources.random, 0};
  PeerLifecycle lifecycle{
      peers.resources.config,
      peers.table(),
      ready,
      reclaimer,
      alarms(),
      {peers.resources.packets, resolver, acks, check, accepts, peers.resources.matchers,
       peers.resources.regions, peers.resources.memory_peers, peers.resources.stats,
       peers.resources.ended}};
};

}  // namespace pullman::engine
