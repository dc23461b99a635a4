// Two processes on one host for unit tests: of each the components that share memory with the
// other, without an engine. The memory is the simulator's, so that a process can end.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "engine/matching.h"
#include "engine/memory_receiver.h"
#include "engine/memory_watch.h"
#include "lifecycle_parts.h"
#include "sim/memory.h"

namespace pullman::engine {

// One of the two processes, with the other as its only peer.
struct MemoryEnd : LifecycleParts {
  static constexpr std::uint64_t kHost = 77;

  // Of two ends the one of the lower number has the lower epoch.
  MemoryEnd(sim::SharedMemory& memory, std::uint32_t number, const sim::MemoryFaults& faults = {})
      : pairs(memory, number, faults), epoch(number) {
    memory.add_process(number);
    peer.command_address = ipv4(20);
    peers.table().index_address(peer);
    peer.introduced = true;
    peer.epoch = 3 - number;
    peer.theirs = {4, 9};
    peer.home.command_to = 7;
    peer.home.data_to = 8;
    peer.home.packet_bytes = 1472;
    peer.home.link.handle_hello(300, 64);
    peer.inbox.start(1);
    peer.outbox.handle_hello(1472, std::uint64_t{1} << 20, 1 << 16);
    for (const Phase phase : {Phase::kCalling, Phase::kConnected}) {
      PeerLifecycle::set_phase(peer, phase, "test");
    }
  }

  // Offers memory to the other end, if it has not.
  void offer() {
    setup.introduce(peer, kHost);
    setup.offer(peer);
  }
  // Hands the MEMORY frame that is due to the other end. Returns false if it is refused.
  bool tell(MemoryEnd& other) {
    std::array<std::byte, wire::kMaxMemoryBytes> bytes;
    const std::size_t length = MemorySetup::write_frame(peer, bytes.data());
    wire::FrameReader reader({bytes.data(), length});
    wire::Frame frame;
    REQUIRE(reader.next(frame));
    return other.setup.handle_frame(other.peer, frame);
  }
  MemoryState state() const { return peer.memory->state; }
  MemoryRail& rail() { return *peer.memory->rail; }

  // Writes a message to the memory.
  void send(Tag tag, std::span<const std::byte> bytes) {
    Request request;
    REQUIRE(peer.outbox.send(peer.id, tag, bytes, request));
    rail().post(*peer.outbox.next_packet());
  }
  std::size_t receive() { return receiver.receive_all(now); }
  std::uint64_t messages() const {
    return peers.resources.inbox_counters.messages + peers.resources.inbox_counters.unexpected;
  }
  std::size_t packets_in_use() const { return peers.resources.packets.in_use(); }

  Peer& peer = peers.add();
  sim::SimPairs pairs;
  std::uint64_t epoch;
  ChannelPoller poller{nics.table};
  RailManager rails{peers.resources.config,
                    epoch,
                    {peers.resources.link_options, peers.resources.link_resources},
                    peers.table(),
                    nics.table,
                    poller,
                    resolver,
                    ready,
                    reclaimer,
                    peers.resources.alarms,
                    clock,
                    check,
                    lifecycle,
                    peers.resources.stats};
  NicExchange exchange{
      peers.resources.config, epoch, kHost,     nics.table, resolver, ready, sender, reclaimer,
      peers.resources.alarms, clock, lifecycle, rails};
  MemorySetup setup{&pairs, epoch, kHost, peers.resources.random, peers.resources.memory_peers,
                    ready};
  BlockedPeers blocked{peers.resources.config,
                       peers.table(),
                       ready,
                       peers.resources.reserve,
                       peers.resources.matchers,
                       peers.resources.inbox_counters,
                       peers.resources.stats};
  FrameHandler frame_handler{clock, ready, reclaimer, lifecycle, rails, exchange, setup, blocked};
  MemoryReceiver receiver{peers.resources.memory_peers,
                          poller,
                          ready,
                          reclaimer,
                          lifecycle,
                          setup,
                          frame_handler,
                          peers.resources.inbox_counters,
                          peers.resources.stats};
  Matching matching{peers.table(), peers.resources.matchers, ready, lifecycle};
  MemoryWatch watch{&pairs, peers.resources.memory_peers, poller, lifecycle, receiver};
};

// Both ends, which have met.
struct MemoryEnds {
  explicit MemoryEnds(const sim::MemoryFaults& there_faults = {})
      : here(memory, 1), there(memory, 2, there_faults) {}

  // `here` offers, `there` joins.
  void share() {
    here.offer();
    REQUIRE(here.tell(there));
    here.setup.activate_if_joined(here.peer);
  }

  sim::SharedMemory memory{1};
  MemoryEnd here;
  MemoryEnd there;
};

}  // namespace pullman::engine
