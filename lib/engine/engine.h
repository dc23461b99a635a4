// The engine is the only place where all layers meet. One engine is one process on the fabric, with
// its NICs, peers, matching and timers. It owns the components. Each component has its own state,
// writes what it is responsible for in the peers and rails that all share, and knows only the
// components declared before it; progress() calls them in the order of a turn.
//
// Apart from its ports the engine does no I/O: it reads no clock, draws randomness only from its
// key, and never blocks. `now` must not go backwards from one call to the next; the caller clamps a
// clock that does. Only one thread may call the engine at a time.
//
// A call that may throw allocates before it changes anything. A call that is noexcept ends the
// process if the engine's own containers cannot grow.
//
// It has more than 30 members since it owns every component, and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/collector.h"
#include "engine/inspector.h"
#include "engine/matching.h"
#include "engine/memory_watch.h"
#include "engine/neighbours.h"
#include "engine/nic_changes.h"
#include "engine/receiver.h"
#include "engine/remote_memory.h"
#include "engine/resources.h"
#include "engine/security/packet_protection.h"
#include "engine/sending.h"
#include "engine/timer_dispatcher.h"

namespace pullman::engine {

class Engine {
 public:
  // `config` must have been validated, and there must be at least one NIC.
  Engine(const Config& config, std::vector<NicPorts> nics, const Identity& identity, Instant now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- operations: those of Context, with the time as a parameter

  Sending& sending() { return sending_; }
  Matching& matching() { return matching_; }
  RemoteMemory& remote_memory() { return remote_memory_; }
  // Gives access to states, statistics, the audit and the dump.
  const Inspector& inspector() const { return inspector_; }
  const Collector& collector() const { return collector_; }
  // What the relay asks.
  Neighbours& neighbours() { return neighbours_; }
  const PeerFailures& failures() const { return lifecycle_.failures(); }

  // --- peers

  Connected connect(Instant now, const nic::Address& address) {
    return handshake_.connect(now, address);
  }
  std::optional<PeerId> accept() { return accepts_.accept(); }
  void disconnect(Instant now, PeerId peer) noexcept { lifecycle_.disconnect(now, peer); }
  void abandon(PeerId peer) noexcept { lifecycle_.abandon(peer); }
  std::string explain_rails(PeerId peer) const { return rails_.explain(peer); }
  std::optional<RailEvent> take_rail_event(PeerId peer) { return rails_.take_event(peer); }
  Status begin_check(Instant now, PeerId peer, Duration limit) noexcept;
  std::optional<std::vector<RailCheck>> check_result(PeerId peer) const {
    return check_.result(peer);
  }

  // --- NICs

  // Returns the address of the command channel of the first NIC that is not the loopback device, or
  // of the first NIC if all are.
  const nic::Address& address() const { return nics_.address(); }
  // Returns the addresses of the NICs that peers are told of, in their order; those of the loopback
  // only if there is nothing else.
  std::vector<nic::Address> addresses() const;
  // Returns which of the addresses of a process is the best to connect() to.
  std::size_t nearest(std::span<const nic::Address> addresses) const {
    return nics_.nearest(addresses);
  }
  // Adds a NIC, or replaces the ports of one whose address has changed: `slot` is the number of an
  // existing NIC, or the next free one. Peers are told, and the old ports of the slot are closed.
  // Returns false if there is no room for the NIC, if its packets are longer than longest_packet(),
  // or if the engine is closing.
  bool set_nic(Instant now, std::size_t slot, NicPorts nic);
  std::size_t longest_packet() const;
  // Returns whether a peer that has not ended has a rail on this NIC.
  bool is_in_use(std::size_t slot) const { return nic_changes_.is_in_use(slot); }
  // Swaps the ports of two NICs: the address of `to` is gone, and peers go on at that of `from`,
  // which is not in use. Returns false if there are no two such NICs, or if the engine is closing.
  bool move_nic(Instant now, std::size_t from, std::size_t to);
  // Drains the NIC of that name for maintenance: until restore_rail(), it carries nothing but ACKs.
  // Returns kInvalidArgument if there is no such NIC, kBusy if at least one peer has no other
  // usable rail.
  Status drain_rail(Instant now, std::string_view nic) {
    return rails_.set_drained(now, nic, true);
  }
  Status restore_rail(Instant now, std::string_view nic) {
    return rails_.set_drained(now, nic, false);
  }

  // --- the loop

  // Runs one turn of the loop and returns the number of packets received.
  std::size_t progress(Instant now) noexcept;
  // Says that the program has watched the NICs until `now`: had a packet come before, it would have
  // called progress(). A program that sleeps calls this. Without it, packets may seem to have
  // waited unread since the last turn.
  void watched(Instant now) { clock_.watched(now); }
  // Makes the next turn poll port events and quiet channels, too, which other turns poll only now
  // and then: a program that is about to sleep need not be woken for them.
  void prepare_to_block() {
    port_events_.poll_next_turn();
    poller_.poll_all_next_turn();
  }
  // The program is about to sleep, and progress() found nothing to do. Returns false if a peer on
  // this host has written something since, so that it must not. Peers wake it only if it says so.
  bool may_sleep() {
    memory_watch_.prepare_to_block();
    return memory_receiver_.prepare_to_block();
  }
  // Returns whether the next turn sends something even if nothing arrives and no timer expires.
  bool has_pending_tx() const {
    return acks_.any_due() || transmitter_.has_work() || acks_.deferred_owes();
  }
  // Returns when progress() must be called even if nothing arrives: kNever if nothing is due, `now`
  // or earlier if there is something to send at once.
  Instant next_deadline() const;

  // --- closing

  // Closing takes steps: begin_close() once, progress() until drained(), then abort(), which ends
  // what is left with kClosed. If the engine is not drained, close_abortively() replaces abort()
  // and sends BYE to the peers first. After begin_close() no operation is accepted, and callers are
  // ignored.
  void begin_close(Instant now) noexcept { lifecycle_.begin_close(now); }
  bool drained() const { return lifecycle_.all_gone() && !acks_.any_due() && !nics_.has_posted(); }
  void close_abortively(Instant now) noexcept;
  void abort() noexcept { lifecycle_.abort(); }

 private:
  bool may_return_early(Instant now) const;
  bool shares_memory() const { return !resources_.memory_peers.empty(); }

  EngineResources resources_;

  std::unique_ptr<PacketProtection> protection_;  // null: packets are not protected
  NicTable nics_;
  PollClock clock_;
  ChannelPoller poller_;
  CreditAllocator credits_;
  Resolver resolver_;
  ReadyPeers ready_;
  AckScheduler acks_;
  PacketSender sender_;
  PacketReclaimer reclaimer_;
  AcceptQueue accepts_;
  PathCheck check_;
  StatelessReplies replies_;
  PeerLifecycle lifecycle_;
  Liveness liveness_;
  PathSizer path_sizer_;
  RailManager rails_;
  NicExchange exchange_;
  MemorySetup memory_setup_;
  BlockedPeers blocked_;
  FrameHandler frame_handler_;
  AckHandler ack_handler_;
  Handshake handshake_;
  PortEvents port_events_;
  NicChanges nic_changes_;
  Transmitter transmitter_;
  MemoryReceiver memory_receiver_;
  MemoryWatch memory_watch_;
  Receiver receiver_;
  TimerDispatcher timers_;
  Sending sending_;
  Matching matching_;
  RemoteMemory remote_memory_;
  Inspector inspector_;
  Collector collector_;
  Neighbours neighbours_;
};

}  // namespace pullman::engine
