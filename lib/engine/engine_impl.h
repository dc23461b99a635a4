// The engine's inside. One class, told in ten files, each one part of a turn:
//   engine.cc       the verbs of the API, and the loop
//   receive.cc      from a datagram to its frames
//   receive_run.cc  many packets of a long message, received at once
//   transmit.cc     from due frames to datagrams, ACKs included
//   handshake.cc    HELLO and WELCOME: how peers meet
//   callers.cc      who a HELLO is from, and what it brought
//   runs.cc         long messages, many packets at a time
//   path.cc         how long packets may be on the way to a peer
//   endings.cc      timers, BYE, silence: how they part
//   inspect.cc      statistics, audit, dump
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "base/keyed_random.h"
#include "channel/module.h"
#include "engine/engine.h"
#include "engine/peer.h"
#include "engine/peer_table.h"
#include "message/matcher.h"
#include "reliability/hotel.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/verdict.h"

namespace pullman::engine {

using channel::Channel;
using channel::ChannelKind;
using channel::Packet;
using wire::Verdict;

class Engine::Impl {
 public:
  Impl(const Config& config, std::vector<NicPorts> nics, const KeyedRandom::Key& key, Instant now);
  ~Impl();

  Connected connect(Instant now, const nic::Address& address);
  std::optional<PeerId> accept();
  void disconnect(Instant now, PeerId id);
  Status send(Instant now, PeerId id, Tag tag, std::span<const std::byte> bytes, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 Request& request);
  bool cancel(Request& request);
  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore);
  void watched(Instant now) { watched_until_ = now; }
  std::size_t progress(Instant now);
  Instant next_deadline() const;
  bool sends_at_once(PeerId id) const {
    const Peer* peer = peers_.find(id);
    return peer != nullptr && sends_at_once(*peer);
  }
  void begin_close(Instant now);
  bool drained() const;
  void abort();
  PeerState peer_state(PeerId id) const;
  Status peer_status(PeerId id) const;
  std::optional<LinkView> link(PeerId id) const;
  const nic::Address& address() const { return command().port().address(); }
  Stats stats() const;
  Audit audit() const;
  std::string dump() const;

 private:
  // Retransmissions in one turn, then new work and ACKs (DESIGN section 5).
  static constexpr std::size_t kRetransmitsPerTurn = 16;
  // Packets to one peer before the next one has its turn.
  static constexpr std::size_t kPacketsPerTurn = Channel::kBatch;
  // Callers that have not proved themselves are a quarter of the peers at most, but this many at
  // least (wire.md 5.5).
  static constexpr std::size_t kLeastHalfOpen = 64;
  // Of two calls that cross one is ignored by its receiver until that one's own has been repeated
  // so often.
  static constexpr std::uint64_t kTimeoutsBeforeAnswer = 3;
  // HELLO and WELCOME bodies are padded to this: neither is longer than the other (wire.md 5.5).
  static constexpr std::size_t kHelloBodyBytes = 256;
  // The least packet sizes a peer may announce.
  static constexpr std::size_t kLeastCommandBytes = 576;
  static constexpr std::size_t kLeastDataBytes = 576;
  // How long a BYE is waited for: everything before it has been acked, it is a courtesy.
  static constexpr Duration kFarewell = std::chrono::milliseconds(500);
  // Turns that bring packets, in a row or not, before one of them looks at the NIC's events, too.
  static constexpr std::uint32_t kBusyTurnsPerLook = 64;
  // How long a quiet channel is not asked while the other is busy, and in turns that bring packets.
  static constexpr Duration kRest = std::chrono::microseconds(4);
  static constexpr Duration kBusyRest = std::chrono::microseconds(32);
  // So much of our own absence is told from the network's delay at most.
  static constexpr Duration kMostUnseen = std::chrono::milliseconds(4);
  // Granularity of "heard lately", for sharing the receive credit.
  static constexpr Duration kTick = std::chrono::milliseconds(10);

  // --- inspect.cc
  std::size_t packets_in_flight() const;

  // --- receive.cc
  std::size_t receive_all(Instant now);
  bool rests(Instant now, const Channel& channel, const Channel& other, Duration rest);
  std::size_t receive_from(Instant now, Channel& channel);
  Verdict handle_datagram(Instant now, std::span<const std::byte> datagram);
  bool may_speak(const Peer& peer) const;
  Verdict handle_control(Instant now, Peer& peer, const wire::PacketHeader& header,
                         std::span<const std::byte> body);
  Verdict handle_sequenced(Instant now, Peer& peer, const wire::PacketHeader& header,
                           std::span<const std::byte> body);
  Verdict handle_frames(Instant now, Peer& peer, const wire::PacketHeader& header);
  // A caller that has not proved itself.
  struct Caller {
    PeerId id;
    std::uint64_t epoch = 0;
    wire::ConnectionId reply_to;
    Instant since{};
  };
  // What a packet's frames amounted to.
  struct Effect {
    bool refused = false;    // one of them is beyond what was granted: the packet counts as lost
    bool redundant = false;  // all of its message bytes had come before
    bool urgent = false;     // it asks for an ACK at once
    bool bye = false;
  };
  Effect act_on(Peer& peer, wire::FrameList& frames);
  Verdict handle_late(Instant now, Peer& peer, const wire::PacketHeader& header,
                      std::span<const std::byte> body);
  Verdict handle_ack(Instant now, Peer& peer, const wire::PacketHeader& header,
                     const wire::Frame* sack, reliability::AckTiming timing);
  // The ACK that came with a message: the program may answer that before we look at it.
  struct LateAck {
    Peer* peer = nullptr;  // null: there is none
    wire::PacketHeader header;
    Instant came_at{};
    Duration unseen{};
  };
  bool may_wait(const Peer& peer, const wire::PacketHeader& header) const;
  void handle_late_ack(Instant now);
  void collect(Instant now, Peer& peer);
  void note_heard(Instant now, Peer& peer);
  void schedule_ack(Instant now, Peer& peer);
  void share_credit();

  // --- receive_run.cc
  std::size_t take_run(Instant now, std::span<const nic::Incoming> batch);
  bool in_order_behind(const Peer& peer, const wire::PacketHeader& header) const;

  // --- transmit.cc
  bool sends_at_once(const Peer& peer) const;
  void mark_ready(Peer& peer);
  void transmit(Instant now);
  bool serve(Instant now, Peer& peer);
  bool resend_lost(Instant now, Peer& peer);
  bool send_probe(Instant now, Peer& peer);
  bool probe_with_oldest(Instant now, Peer& peer);
  bool send_control_frames(Instant now, Peer& peer);
  bool send_new(Instant now, Peer& peer);
  bool starves();
  bool has_work(const Peer& peer) const;
  Channel* channel_for(const Peer& peer, const Packet& packet);
  Channel* with_room(ChannelKind kind);
  void post(Instant now, Peer& peer, Packet& packet, Channel& channel, wire::PacketType type);
  void note_ride(Peer& peer);
  void send_acks(Instant now);
  void send_ack(Instant now, Peer& peer);
  void flush();

  // --- runs.cc
  std::size_t send_runs(Instant now, Peer& peer, std::size_t most);
  void stamp_run(Instant now, Peer& peer, channel::Run& run);

  // --- path.cc
  void settle_path(Instant now, Peer& peer);
  void send_path_probe(Instant now, Peer& peer);
  void drop_lost_probe(Instant now, Peer& peer, Packet& probe);
  void resume(Peer& peer, Packet& packet);

  // --- handshake.cc
  Peer* make_peer(Instant now, const nic::Address& command);
  void start_resolving(Peer& peer, ChannelKind kind, const nic::Address& address);
  void handle_events(Instant now);
  void handle_event(Instant now, ChannelKind kind, const nic::PortEvent& event);
  void handle_resolved(Instant now, Peer& peer);
  Verdict handle_hello(Instant now, const wire::PacketHeader& header,
                       std::span<const std::byte> body);
  Verdict handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                         std::span<const std::byte> body);
  bool may_call(const Peer& peer) const;
  std::optional<wire::Hello> read_hello(const wire::PacketHeader& header,
                                        std::span<const std::byte> body) const;
  bool may_introduce(Peer& peer, const wire::Hello& hello);
  void introduce(Peer& peer);
  void call(Instant now, Peer& peer);
  void answer(Peer& peer);
  void handle_proof(Instant now, Peer& peer);
  void prove(Instant now, Peer& peer);
  void repeat_hello(Instant now, Peer& peer, bool crossed);
  std::uint32_t new_proof();
  Packet* make_hello(Peer& peer, std::size_t packet_bytes);
  std::size_t write_hello(const Peer& peer, std::byte* out) const;
  wire::Hello describe(const Peer& peer) const;

  // --- callers.cc
  Peer* peer_for_hello(Instant now, const wire::Hello& hello);
  Peer* new_caller(Instant now, const wire::Hello& hello);
  void note_said(Instant now, Peer& peer, const wire::PacketHeader& header,
                 const wire::Hello& hello, std::span<const std::byte> body);
  void hold_riders(Introduction& said, std::span<const std::byte> body);
  void forget_said(Peer& peer);
  void deliver_riders(Instant now, Peer& peer);
  Peer* called_at(const wire::Hello& hello) const;
  bool our_call_wins(const wire::Hello& hello) const;
  void adopt_caller(Peer& peer);
  void leave_half_open(const Peer& peer);
  bool has_room_for_caller(Instant now);
  void drop_oldest_caller();
  void announce(const Peer& peer);
  void drop_silent_callers(Instant now);

  // --- endings.cc
  void handle_timers(Instant now);
  void handle_eviction(Instant now, Packet& packet);
  void handle_alarm(Instant now, Peer& peer);
  void arm(Instant now, Peer& peer);
  Duration alarm_stay() const;
  bool has_pending(const Peer& peer) const;
  void set_phase(Peer& peer, Phase phase);
  void begin_leaving(Instant now, Peer& peer);
  void handle_bye(Peer& peer);
  void end_peer(Peer& peer, Status why);
  void take_back_packets(Peer& peer);
  void release(Packet& packet);
  void discard(Peer& peer);
  void discard_leaving();
  void update_loss_timer(Instant now, Peer& peer);

  Channel& command() { return modules_.front()->channel(ChannelKind::kCommand); }
  const Channel& command() const { return modules_.front()->channel(ChannelKind::kCommand); }
  Channel& data() { return modules_.front()->channel(ChannelKind::kData); }
  const Channel& data() const { return modules_.front()->channel(ChannelKind::kData); }

  Config config_;
  KeyedRandom random_;
  std::uint64_t epoch_;  // this incarnation
  std::vector<std::unique_ptr<channel::Module>> modules_;
  channel::PacketPool packets_;
  reliability::Hotel<Packet> hotel_;
  reliability::WindowRings rings_;
  Pool<reliability::ArrivalBitmap> arrival_bitmaps_;
  Pool<message::IdBitmap> id_bitmaps_;
  Pool<message::SendQueues> send_queues_;
  message::Matcher matcher_;
  message::InboxCounters inbox_counters_;
  reliability::LinkOptions link_options_;
  reliability::LinkResources link_resources_;
  message::InboxResources inbox_resources_;
  message::OutboxResources outbox_resources_;
  std::uint64_t share_;        // unexpected memory of one peer
  std::uint32_t eager_bytes_;  // of one message, before it is granted

  reliability::Floor<Timer> ack_timers_;
  reliability::Hotel<Timer> alarms_;  // loss timers and alarms
  ReadyList ready_;
  AckList ack_now_;
  PeerTable peers_;
  std::deque<PeerId> callers_;     // for accept()
  std::vector<Caller> half_open_;  // not proved yet, oldest first
  std::deque<PeerId> gone_;        // oldest first: reused when the table is full
  std::vector<PeerId> leaving_;    // disconnected and gone: freed at the end of the turn
  std::uint64_t peers_born_ = 0;
  bool closing_ = false;

  std::size_t resolving_ = 0;               // addresses the NIC has been asked about
  Instant resting_until_ = Instant::max();  // when what was not asked this turn is to be asked
  std::size_t retransmits_left_ = 0;        // this turn
  bool port_full_ = false;                  // this turn: it refused what was not to wait
  std::size_t starving_ = 0;                // in ready_, for want of a packet only
  std::uint32_t busy_turns_ = 0;
  std::array<nic::PortEvent, 16> events_;
  wire::FrameList frames_;                               // of the datagram in hand
  std::array<nic::Outgoing, Channel::kBatch> outgoing_;  // chunks of the runs in hand
  bool lone_ = false;                                    // the datagram in hand came alone
  LateAck late_ack_;
  std::uint64_t tick_ = 0;  // now / kTick
  Instant watched_until_;   // what had come by then has been taken
  Duration unseen_{};       // how long nobody had looked before this turn
  std::uint32_t heard_this_tick_ = 0;
  std::uint32_t heard_last_tick_ = 0;
  std::uint16_t credit_ = 0;  // for each peer: see share_credit()
  Stats stats_;
  std::uint64_t rtt_ns_ = 0;
};

}  // namespace pullman::engine
