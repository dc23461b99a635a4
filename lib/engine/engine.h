// The engine: the only place where all layers meet. One engine is one process on the fabric: its
// NICs, its peers, its matching, its timers. It owns the components; each has its own state and
// knows only those before it, and a turn of the loop reads as what it does.
//
// Pure but for its ports: it reads no clock, draws no randomness but from its key, and never
// blocks. `now` never runs backwards from one call to the next (a clock that does is clamped by the
// caller). Threads: one at a time.
//
// A call that may throw allocates before it changes anything. A call that is noexcept ends the
// process if the engine's own containers cannot grow.
//
// It has more than 30 members since it owns every component, and nothing else.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/inspector.h"
#include "engine/matching.h"
#include "engine/nic_changes.h"
#include "engine/receiver.h"
#include "engine/remote_memory.h"
#include "engine/resources.h"
#include "engine/sending.h"
#include "engine/timer_dispatcher.h"

namespace pullman::engine {

class Engine {
 public:
  // `config` is validated. At least one NIC.
  Engine(const Config& config, std::vector<NicPorts> nics, const Identity& identity, Instant now);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- operations; all as in Context, with the time given

  Sending& sending() { return sending_; }
  Matching& matching() { return matching_; }
  RemoteMemory& remote_memory() { return remote_memory_; }
  // States, statistics, the audit, the dump.
  const Inspector& inspector() const { return inspector_; }

  // --- peers

  Connected connect(Instant now, const nic::Address& address) {
    return handshake_.connect(now, address);
  }
  std::optional<PeerId> accept() { return accepts_.accept(); }
  void disconnect(Instant now, PeerId peer) noexcept { lifecycle_.disconnect(now, peer); }
  void abandon(PeerId peer) noexcept { lifecycle_.abandon(peer); }
  std::string explain_rails(PeerId peer) const { return rails_.explain(peer); }
  std::optional<RailEvent> take_rail_event(PeerId peer) { return rails_.take_event(peer); }
  Status begin_check(Instant now, PeerId peer, Duration limit) noexcept {
    return lifecycle_.closing() ? Status::kClosed : check_.begin(now, peer, limit);
  }
  std::optional<std::vector<RailCheck>> check_result(PeerId peer) const {
    return check_.result(peer);
  }

  // --- NICs

  // Of the first NIC's command channel, not the loopback's.
  const nic::Address& address() const { return nics_.address(); }
  // A NIC has come, or one of those there are has another address: the number `slot` is that of one
  // that is there, or the next. Peers are told. Its packets are no longer than longest_packet(),
  // and the old ports of the slot are closed. False: there is no room for it, or it is too late.
  bool set_nic(Instant now, std::size_t slot, NicPorts nic);
  std::size_t longest_packet() const;
  // A peer that has not ended has a rail by it.
  bool is_in_use(std::size_t slot) const { return nic_changes_.is_in_use(slot); }
  // The address of `to` is gone, and peers go on at that of `from`, which is not in use: from now
  // on either has the other's ports. False: it is too late.
  bool move_nic(Instant now, std::size_t from, std::size_t to);
  // For maintenance: from now on, until restore_rail(), nothing but ACKs takes the NIC of that
  // name. kInvalidArgument: there is no such NIC. kBusy: to one peer at least there is no other
  // way.
  Status drain_rail(Instant now, std::string_view nic) {
    return rails_.set_drained(now, nic, true);
  }
  Status restore_rail(Instant now, std::string_view nic) {
    return rails_.set_drained(now, nic, false);
  }

  // --- the loop

  // One turn. Returns packets received.
  std::size_t progress(Instant now) noexcept;
  // Had anything come before `now`, progress() would have been called: a program that sleeps says
  // so. Without it, time since the last turn may have passed for packets that nobody took.
  void watched(Instant now) { clock_.watched(now); }
  // The next turn looks at what others look at once in a while: a program that wants to sleep need
  // not be woken for it.
  void prepare_to_block() {
    port_events_.poll_next_turn();
    poller_.prepare_to_block();
  }
  // Whether the next turn sends something, whatever arrives, other than by time.
  bool has_pending_tx() const {
    return acks_.any_due() || transmitter_.has_work() || acks_.deferred_owes();
  }
  // When progress() has to be called although nothing arrives; kNever if nothing is due, and at
  // most `now` if there is something to send at once.
  Instant next_deadline() const;

  // --- closing

  // In steps: begin_close() once, progress() until drained(), then abort() ends what is left with
  // kClosed; close_abortively(), where it is not drained, tells the peers before. After
  // begin_close() no operation is accepted; peers that connect are ignored.
  void begin_close(Instant now) noexcept { lifecycle_.begin_close(now); }
  bool drained() const { return lifecycle_.all_gone() && !acks_.any_due() && !nics_.has_posted(); }
  void close_abortively(Instant now) noexcept;
  void abort() noexcept { lifecycle_.abort(); }

 private:
  EngineResources resources_;

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
  UnknownPeerReplies replies_;
  PeerLifecycle lifecycle_;
  Liveness liveness_;
  PathSizer path_sizer_;
  RailManager rails_;
  NicExchange exchange_;
  BlockedPeers blocked_;
  FrameHandler frame_handler_;
  AckHandler ack_handler_;
  Handshake handshake_;
  PortEvents port_events_;
  NicChanges nic_changes_;
  Transmitter transmitter_;
  Receiver receiver_;
  TimerDispatcher timers_;
  Sending sending_;
  Matching matching_;
  RemoteMemory remote_memory_;
  Inspector inspector_;
};

}  // namespace pullman::engine
