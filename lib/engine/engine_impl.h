// The engine's inside. One class, told in several files, each one part of a turn:
//   engine.cc       the verbs of the API, and the loop
//   operations.cc   the verbs that have options, and the one-sided ones
//   receive.cc      from a datagram to its frames
//   receive_run.cc  many packets of a long message, received at once
//   transmit.cc     from due frames to datagrams, ACKs included
//   handshake.cc    HELLO and WELCOME: how peers meet
//   initiator.cc      by which NIC a peer is called, and answered
//   acceptor.cc      who a HELLO is from, and what it brought
//   runs.cc         long messages, many packets at a time
//   path.cc         how long packets may be on the way to a peer
//   nic_changes.cc  NICs that come, and addresses that change, under way
//   rails.cc, rail_setup.cc, rail_upkeep.cc   several ways to one peer
//   rail_check.cc, rail_answer.cc   which packets get through, when somebody asks
//   liveness.cc        whether a silent peer is still there
//   lifecycle.cc      timers, BYE, silence: how they part
//   inspect.cc      statistics, audit, dump
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "base/keyed_random.h"
#include "base/reused_memory.h"
#include "channel/module.h"
#include "engine/engine.h"
#include "engine/peer.h"
#include "engine/peer_table.h"
#include "engine/rails.h"
#include "engine/receive_backpressure.h"
#include "engine/standstill.h"
#include "message/matcher.h"
#include "message/regions.h"
#include "message/send_descriptor.h"
#include "message/space_matchers.h"
#include "reliability/hotel.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/nics.h"
#include "wire/verdict.h"

namespace pullman::engine {

using channel::Channel;
using channel::ChannelKind;
using channel::Packet;
using wire::Verdict;

class Engine::Impl {
 public:
  Impl(const Config& config, std::vector<NicPorts> nics, const Identity& identity, Instant now);
  ~Impl();

  Connected connect(Instant now, const nic::Address& address);
  std::optional<PeerId> accept();
  void disconnect(Instant now, PeerId id);
  void abandon(PeerId id);
  Status send(Instant now, const Departure& departure, PeerId id, Tag tag,
              std::span<const std::byte> bytes, Request& request);
  bool append(const Departure& departure, Tag tag, std::span<const std::byte> bytes,
              Request& request);
  Status send_copy(Instant now, const Departure& departure, PeerId id, Tag tag,
                   std::span<const std::byte> bytes, const SendOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 Request& request);
  Status send(Instant now, PeerId peer, Tag tag, ConstSegments pieces, const SendOptions& options,
              Request& request);
  Status send(Instant now, PeerId peer, Tag tag, const Packer& packer, std::uint64_t length,
              const SendOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, Segments pieces,
                 const ReceiveOptions& options, Request& request);
  Status receive(Instant now, PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                 const ReceiveOptions& options, MultiReceive& receive);
  bool cancel(Request& request);
  std::optional<Probe> probe(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  static std::optional<Probe> tell_of(const message::Unexpected& message);
  std::optional<Probe> next_unexpected(std::uint8_t space);
  std::optional<Probe> claim(PeerId source, Tag tag, Tag ignore, std::uint8_t space = 0);
  Status receive_claimed(Instant now, const Claimed& claimed, Segments pieces, Request& request);
  Status discard_claimed(Instant now, const Claimed& claimed);
  bool add_region(std::uint64_t key, std::span<std::byte> bytes, Access access) {
    return regions_.add(key, bytes, access);
  }
  std::uint64_t add_region(std::span<std::byte> bytes, Access access);
  bool remove_region(std::uint64_t key);
  Status put(Instant now, PeerId peer, const RemotePlace& place, ConstSegments pieces,
             const PutOptions& options, Request& request);
  Status get(Instant now, PeerId peer, const RemotePlace& place, Segments pieces, Request& request);
  Status atomic(Instant now, PeerId peer, const RemotePlace& place, const Atomic& atomic,
                Request& request);
  std::optional<RemoteEvent> take_event();
  std::optional<RailEvent> take_rail_event(PeerId id);
  const message::Regions& regions() const { return regions_; }
  void watched(Instant now) { polled_until_ = now; }
  void prepare_to_block() {
    news_due_ = Instant::min();
    turns_since_news_ = kTurnsPerNews;
    if (attended_ != all_) unattended_due_ = Instant::min();
  }
  std::size_t progress(Instant now);
  void poll_port_events(Instant now, std::size_t received);
  bool has_pending_tx() const;
  Instant next_deadline() const;
  Departure departure(PeerId id) const {
    Peer* peer = peers_.find(id);
    return {peer, peer != nullptr && sends_at_once(*peer)};
  }
  Status set_drained(Instant now, std::string_view nic, bool drained);
  void begin_close(Instant now);
  void close_abortively(Instant now);
  bool drained() const;
  void abort();
  PeerState peer_state(PeerId id) const;
  Status peer_status(PeerId id) const;
  bool is_self(PeerId id) const;
  std::optional<LinkView> link(PeerId id) const;
  std::vector<RailView> rails(Instant now, PeerId id) const;
  std::string explain_rails(PeerId id) const;
  Status begin_check(Instant now, PeerId id, Duration limit);
  std::optional<std::vector<RailCheck>> check_result(PeerId id) const;
  const nic::Address& address() const {
    const auto outside = std::find_if(modules_.begin(), modules_.end(), [](const auto& module) {
      return !module->device().loopback;
    });
    const auto& first = outside != modules_.end() ? *outside : modules_.front();
    return first->channel(ChannelKind::kCommand).port().address();
  }
  bool set_nic(Instant now, std::size_t slot, NicPorts nic);
  bool move_nic(Instant now, std::size_t from, std::size_t to);
  std::size_t longest_packet() const;
  bool is_in_use(std::size_t slot) const;
  Stats stats() const;
  Audit audit() const;
  std::string dump() const;

 private:
  // Retransmissions in one turn, then new work and ACKs (wire.md 7.4).
  static constexpr std::size_t kRetransmitsPerTurn = 16;
  // Callers that have not proved themselves are a quarter of the peers at most, but this many at
  // least (wire.md 5.5).
  static constexpr std::size_t kLeastHalfOpen = 64;
  // Of two calls that cross one is ignored by its receiver until that one's own has been repeated
  // so often.
  static constexpr std::uint64_t kTimeoutsBeforeAnswer = 3;
  // A call unanswered so often, and for so long, leaves by another NIC. Not sooner: who is known by
  // the address of his second NIC is called by that of his first all the same.
  static constexpr std::uint64_t kTimeoutsBeforeOther = 2;
  static constexpr Duration kTimeBeforeOther = std::chrono::milliseconds(250);
  // HELLO and WELCOME bodies are padded to this: neither is longer than the other (wire.md 5.5).
  static constexpr std::size_t kHelloBodyBytes = 328;
  // The least packet sizes a peer may announce.
  static constexpr std::size_t kLeastCommandBytes = Config::kLeastPacketBytes;
  static constexpr std::size_t kLeastDataBytes = Config::kLeastPacketBytes;
  static_assert(kLeastCommandBytes >= reliability::Link::kAckBytes);
  static_assert(kLeastDataBytes >= reliability::PathSize::kLeast);
  // Unanswered questions that are remembered on a rail that was left: an answer may be late.
  static constexpr std::size_t kQuestionsKept = 4;
  // How long a BYE is waited for: everything before it has been acked, it is a courtesy.
  static constexpr Duration kFarewell = std::chrono::milliseconds(500);
  // Of who gives up.
  static constexpr int kGoodByes = 2;
  // How long the NICs' news wait at most, unless four turns take longer; in turns that bring
  // packets, twice as long. To look takes a system call a NIC.
  static constexpr Duration kNewsRest = std::chrono::microseconds(100);
  static constexpr unsigned kTurnsPerNews = 4;
  // How long a quiet channel is not asked while another is busy: this part of its silence, so what
  // comes at last has waited for little beside that, within bounds. In turns that bring packets,
  // the greater of them.
  static constexpr int kRestOfSilence = 8;
  static constexpr Duration kRest = std::chrono::microseconds(4);
  static constexpr Duration kBusyRest = std::chrono::microseconds(32);
  // And of who sends much: half of what a turn may send, at once and no longer ago than this. A few
  // such turns take as long.
  static constexpr Duration kSendingRest = std::chrono::microseconds(128);
  // The same for a NIC of last resort, beside others.
  static constexpr Duration kStreamRest = std::chrono::microseconds(256);
  // Of addresses at which nobody is met.
  static constexpr Duration kUnattendedRest = std::chrono::microseconds(256);
  // So much of our own absence is told from the network's delay at most.
  static constexpr Duration kMaxUnseen = std::chrono::milliseconds(4);
  // Ports that take nothing are asked again after so long, doubling.
  static constexpr Duration kRefusalPause = std::chrono::microseconds(4);
  static constexpr unsigned kMaxRefusals = 7;
  // A silence that is worth a word, if it is not that of a program that computes; and how often.
  static constexpr Duration kLongSilence = std::chrono::seconds(10);
  static constexpr Duration kUnresponsiveWarned = std::chrono::seconds(60);
  // After so long a silence a peer is asked whether it is still the same process, or after this
  // part of its timeout; then when it has been silent twice as long, but so often.
  static constexpr Duration kDoubt = std::chrono::milliseconds(250);
  static constexpr int kDoubtPart = 4;
  static constexpr Duration kLongestDoubt = std::chrono::minutes(1);
  // Who waits for a peer that is not heard asks at least so often whether it lives: until that is
  // overdue itself.
  static constexpr Duration kLook = std::chrono::milliseconds(300);
  // Granularity of "heard lately", for sharing the receive credit.
  static constexpr Duration kTick = std::chrono::milliseconds(10);

  // --- engine.cc
  Status match_or_post(Instant now, Request& request) noexcept;

  // --- operations.cc
  Status why_not(const Peer* peer) const;
  static Status refuse(PeerId id, Tag tag, Status why, Request& request);
  Status start(Instant now, PeerId id, const message::SendDescriptor& descriptor, Request& request);
  Status ask(Instant now, PeerId id, const message::SendDescriptor& question, Segments sink,
             Request& request);
  void depart(Instant now, Peer& peer, bool at_once, std::uint64_t bytes) noexcept;
  // What was sent leaves in the next turn.
  void wait_for_turn(Peer& peer) {
    waits_ = waits_ || peer.outbox.queued_packets() != 0;
    if (!peer.ready.is_linked()) mark_ready(peer);
  }
  void look_after_match(Instant now, Peer& peer, bool more_to_come) noexcept;
  static void redirect(Peer& peer, const Request& message, std::span<const std::byte> from,
                       const std::byte* to);
  // Null: nothing of that space has come.
  message::Matcher* find_matcher(std::uint8_t space) {
    return space == 0 ? &matcher_ : space_matchers_.find(space);
  }
  // Of a receive, for which it was made.
  message::Matcher& matcher_of(Request& receive) {
    return *find_matcher(receive.operation().special.wire_kind);
  }
  bool make_matcher(std::uint8_t space) { return space == 0 || space_matchers_.make(space); }
  template <typename Visit>
  void for_each_matcher(Visit&& visit) {
    visit(matcher_);
    space_matchers_.for_each(visit);
  }
  template <typename Visit>
  void for_each_matcher(Visit&& visit) const {
    visit(matcher_);
    space_matchers_.for_each(visit);
  }
  std::size_t fail_receives(PeerId from, Status why);  // how many
  void fail_all_receives(Status why);
  std::size_t receives_posted() const;
  bool receives_from(PeerId peer) const;

  // --- inspect.cc
  std::size_t packets_in_flight() const;
  RailView view(Instant now, const Rail& rail) const;

  // --- receive.cc
  std::size_t receive_all(Instant now);
  // The channels to ask this turn. Asking one costs a system call on kernel providers. One that is
  // quiet while another is not is asked only once in a while: an answer may wait for it. Whoever
  // sleeps is woken by any of them (nic::Port::wait_fd).
  std::uint32_t to_ask(Instant now) {
    if (now >= unattended_due_) [[unlikely]]
      return look_at_all(now);
    if (active_channels_ == 0 || active_channels_ == attended_) return attended_;
    return now < quiet_due_ ? active_channels_ : look_at_quiet_ones(now);
  }
  std::uint32_t look_at_quiet_ones(Instant now);
  std::uint32_t look_at_all(Instant now);
  std::size_t take_batch(Instant now, std::size_t place, std::span<const nic::Incoming> batch);
  Verdict handle_datagram(Instant now, std::span<const std::byte> datagram,
                          wire::PacketHeader& header);
  bool may_speak(const Peer& peer) const;
  bool brings_news(const Peer& peer, std::span<const std::byte> body) const;
  Verdict handle_control(Instant now, Rail& rail, const wire::PacketHeader& header,
                         std::span<const std::byte> body);
  Verdict handle_sequenced(Instant now, Rail& rail, const wire::PacketHeader& header,
                           std::span<const std::byte> body);
  Verdict handle_frames(Instant now, Rail& rail, const wire::PacketHeader& header);
  void look_after_frames(Instant now, Peer& peer);
  // A caller that has not proved itself.
  struct Caller {
    PeerId id;
    std::uint64_t epoch = 0;
    wire::ConnectionId reply_to;
    Instant since{};  // its time counts from then on
    std::uint8_t renewals = 0;
  };
  // What a packet's frames amounted to.
  struct Effect {
    bool refused = false;    // one of them is beyond what was granted: the packet counts as lost
    bool redundant = false;  // all of its message bytes had come before
    bool urgent = false;     // it asks for an ACK at once
    bool bye = false;
  };
  Effect act_on(Peer& peer, wire::FrameList& frames);
  Effect act_on_message(Peer& peer);
  static bool handle_result(Peer& peer, const wire::Frame& frame);
  Verdict handle_late(Instant now, Rail& rail, const wire::PacketHeader& header,
                      std::span<const std::byte> body);
  Verdict handle_ack(Instant now, Rail& rail, const wire::PacketHeader& header,
                     const wire::Frame* sack, reliability::AckTiming timing);
  // The ACK that came with a message: the program may answer that before we look at it.
  struct DeferredAck {
    Rail* rail = nullptr;  // null: there is none
    wire::PacketHeader header;
    Instant came_at{};
    Duration unseen{};
    std::size_t module = 0;  // the NIC it came through
  };
  bool may_wait(const Rail& rail, const wire::PacketHeader& header) const;
  bool repeats_deferred_ack(const Rail& rail, const wire::PacketHeader& header) const;
  void handle_deferred_ack(Instant now) {
    if (deferred_ack_.rail != nullptr) take_deferred_ack(now);
  }
  void take_deferred_ack(Instant now);
  void collect(Instant now, Rail& rail);
  void note_heard(Instant now, Peer& peer);
  void schedule_ack(Instant now, Rail& rail);
  void share_credit();

  // --- receive_run.cc
  std::size_t take_run(Instant now, const wire::PacketHeader& first,
                       std::span<const nic::Incoming> batch);
  bool in_order_behind(const Rail& rail, const wire::PacketHeader& header) const;

  // --- transmit.cc
  bool sends_at_once(const Peer& peer) const;
  void mark_ready(Peer& peer);
  void put_refused_first();
  void transmit(Instant now);
  bool leaves_whole(const Peer& peer) const;
  void send_what_waits(Instant now);
  bool serve(Instant now, Peer& peer);
  bool serve_home(Instant now, Peer& peer);  // with no other rail
  bool resend_lost(Instant now, Rail& rail);
  bool send_probe(Instant now, Rail& rail);
  bool probe_with_oldest(Instant now, Rail& rail);
  bool send_control_frames(Instant now, Rail& rail, ChannelKind kind = ChannelKind::kCommand);
  // Whether a packet waits for others to leave with.
  enum class Leaves : std::uint8_t { kInBatch, kAlone };
  bool send_new(Instant now, Rail& rail, Leaves how = Leaves::kInBatch);
  bool is_blocked_on_pool();
  // Nearly no peer has anything that waits: asked with every packet.
  bool may_announce(const Peer& peer) const {
    return peer.outbox.may_announce() && all_was_heard(peer);
  }
  bool all_was_heard(const Peer& peer) const;

  // --- blocked.cc: peers without allowance
  bool handle_blocked(Instant now, Peer& peer, std::uint64_t limit);
  std::uint64_t messages_done() const;
  bool is_under_way(const Peer& peer) const;
  void look_after_blocked(Instant now);
  void end_receives_of_blocked(Standstill::Found found);
  bool has_work(const Peer& peer) const;
  bool has_work(const Rail& rail) const;
  // Frames wait that belong to no message.
  static bool has_control(const Peer& peer) {
    return peer.inbox.has_frames() || peer.bye_due ||
           (peer.rails != nullptr && peer.rails->reports_due);
  }
  // The same without an allowance.
  static bool has_pending_frames(const Peer& peer) {
    return peer.inbox.has_answers() || peer.bye_due ||
           (peer.rails != nullptr && peer.rails->reports_due);
  }
  static std::size_t control_bytes(const Peer& peer);
  // What became of an attempt to send.
  enum class Next : std::uint8_t {
    kGoOn,     // something left: there may be more
    kNothing,  // there is nothing to send, or it must wait for an ack
    kBlocked,  // no room or no packet: the next turn goes on
  };
  // What serve() would do, had the ports room and the pool packets.
  enum class Sends : std::uint8_t {
    kNothing,    // no work, credit or window
    kPerhaps,    // an ACK may be waited for, or what others gave back is its to borrow: it hears of
                 // that when it is blocked, or with what comes next
    kSomething,  // and it must be in ready_
  };
  Sends can_send(Peer& peer) const;
  static Sends home_can_send(const Peer& peer);
  static bool can_tend(const Rail& rail);
  bool has_work() const { return ready_.size() > blocked_on_pool_ || posted_ != 0; }
  Next send_next(Instant now, Rail& rail, std::size_t most, std::size_t& sent);
  // Tiny messages take the command channel, others, and their last few bytes, the data channel:
  // there they come behind the rest, and say by their ACK what became of that. A tiny one behind
  // others that wait leaves with them: so it does not overtake what must match first.
  ChannelKind kind_for(const Rail& rail, const Packet& packet, const Channel& data) const {
    constexpr std::size_t kOverhead = wire::kHeaderBytes + wire::kMessageBytes;
    const bool tiny =
        packet.payload == nullptr && !wire::begins_with_chunk(packet.body()) &&
        packet.size() <= std::min<std::size_t>(config_.tiny_bytes + kOverhead, rail.command_bytes);
    return tiny && data.waiting() == 0 ? ChannelKind::kCommand : ChannelKind::kData;
  }
  Channel* channel_for(const Rail& rail, const Packet& packet);
  static Channel* with_room(const Rail& rail, ChannelKind kind) {
    Channel& channel = module_of(rail).channel(kind);
    return channel.room() != 0 || channel.flush() ? &channel : nullptr;
  }
  void post(Instant now, Rail& rail, Packet& packet, Channel& channel, wire::PacketType type,
            Leaves how = Leaves::kInBatch);
  void note_piggyback(Rail& rail);
  void send_acks(Instant now);
  void send_ack(Instant now, Rail& rail);
  void flush() {
    if (posted_ != 0) flush_posted();
  }
  void flush_posted();

  // --- runs.cc
  static std::size_t share_of_turn(const Rail& rail);
  bool polls_infrequently(const Rail& rail) const;
  bool waits_for_more(const Rail& rail) const;
  static bool fills_no_burst(const Rail& rail);
  std::size_t send_runs(Instant now, Rail& rail, std::size_t most);
  message::Outbox::Heads heads_for(const Rail& rail) const;
  void stamp_run(Instant now, Rail& rail, channel::Run& run);

  // --- rails.cc
  static RailUpkeep& upkeep_of(const Rail& rail) { return *rail.peer.rails->care[rail.number]; }
  static bool usable(const Rail& rail) {
    return rail.peer.rails == nullptr || upkeep_of(rail).health.usable();
  }
  // The packet in hand came the way the other end sends what is on this rail.
  bool came_by(const Rail& rail) const {
    return current_module_ == (rail.peer.rails == nullptr ? rail.module : upkeep_of(rail).here);
  }
  // Our NICs that a rail needs: it may leave by one and come back by another (wire.md 9.3).
  static std::uint32_t nics_of(const Rail& rail) {
    const std::uint32_t out = std::uint32_t{1} << rail.module;
    return rail.peer.rails == nullptr ? out : out | std::uint32_t{1} << upkeep_of(rail).here;
  }
  bool rails_have_work(const Peer& peer) const;
  bool serve_rails(Instant now, Peer& peer);
  void tend_rail(Instant now, Rail& rail, bool& more);
  Next resend_evacuated(Instant now, Peer& peer);
  template <typename Choose>
  static Rail* choose_rail(Peer& peer, std::uint32_t full_ports, Choose choose);
  static Rail* rail_for_bulk(Peer& peer, std::uint32_t full_ports);
  static Rail* quickest_rail(Peer& peer, std::uint32_t full_ports);
  Rail* rail_for_small(Peer& peer);
  bool waits_for_port(Peer& peer, bool small) const;
  static Sends rails_can_send(Peer& peer);
  void settle_sizes(Peer& peer);
  void note_sent(const Rail& rail, std::size_t packets, std::size_t bytes);

  // --- rail_setup.cc
  void start_rails(Peer& peer, std::span<const wire::NicInfo> theirs);
  std::size_t write_reports(Peer& peer, std::byte* out, std::size_t room);
  void handle_ways(Peer& peer, const wire::Frame& frame);
  void handle_rail_report(Peer& peer, const wire::Frame& frame);
  struct Pairing;
  const wire::Ways& settle_ways(Peer& peer);
  Pairing pairing_with(const Peer& peer, std::span<const wire::NicInfo> mine,
                       const wire::Ways& ours) const;  // once their_ways are known
  void pair_rails(Peer& peer, const wire::Ways& theirs);
  void pair_none(Peer& peer);
  void make_pairs(Peer& peer);
  void make_rail(Peer& peer, std::size_t number, std::uint8_t module, std::uint8_t there);
  void resolve_rail(Rail& rail);
  void handle_rail_event(Instant now, Rail& rail, bool resolved);
  void handle_rail_resolved(Instant now, Rail& rail);
  wire::Ways ways_to(const Peer& peer) const;
  void name_home(const Peer& peer, wire::Ways& ways) const;

  static void list_entries(const Peer& peer, std::span<const wire::NicInfo> mine, Pairing& out);
  void follow_rails(Peer& peer, const wire::NicList& list);
  bool plan_rails(Peer& peer);

  // --- nic_changes.cc
  void enlist(std::size_t slot);
  void leave_unattended(std::size_t slot);
  void attend(std::size_t slot);
  void share_news_of_nics();
  void forget_events(std::size_t slot);
  template <typename Visit>
  void for_each_rail_by(std::size_t slot, Visit visit);
  void replace_module(Instant now, std::size_t slot, std::unique_ptr<channel::Module> module);
  void forget_channels(std::size_t slot);
  void drop_callers_at(std::size_t slot);
  void forget_destination(std::size_t slot, ChannelKind kind, nic::Destination& to);
  void forget_destinations(Rail& rail);
  void detach(Instant now, Rail& rail);
  void pull_out(Rail& rail);
  void attach(Instant now, Rail& rail);
  static bool tells_nics(const Peer& peer);
  void tell_nics_to(Peer& peer);
  bool send_nics(Instant now, Peer& peer);
  Rail* rail_for_nics(Peer& peer);
  wire::NicList list_for(Peer& peer);
  void repeat_nics(const Packet& packet, Peer& peer);
  static bool holds_list(const Packet& packet);
  void drop_lost_list(Instant now, Rail& rail, Packet& packet);
  static bool holds_old_list(const Packet& packet, const Peer& peer);
  static NicNews& news_of(Peer& peer);
  bool handle_nics(Peer& peer, const wire::Frame& frame);
  static Instant list_due(const Peer& peer);
  void take_newest_list(Instant now, Peer& peer);
  void take_nics(Instant now, Peer& peer, const wire::NicList& list);
  void note_address(Instant now, Rail& rail, std::span<const wire::NicInfo> before,
                    const wire::NicInfo& nic);
  void aim(Rail& rail);
  void aim_anew(Instant now, Rail& rail, const wire::NicInfo& nic);

  // --- rail_upkeep.cc
  failover::Health::Pace pace_of(const Rail& rail) const;
  void handle_rail_silence(Instant now, Rail& rail, Duration waited);
  void handle_rail_answer(Instant now, Rail& rail, bool own_way);
  static bool others_up(const Rail& rail);
  void ask_left_rails(Instant now, Peer& peer);
  void judge_losses(Instant now, Rail& rail);
  void wake_rails(Instant now, Peer& peer);
  void handle_rail_due(Instant now, Rail& rail);
  void leave_rail(Instant now, Rail& rail, RailReason reason);
  void allow_rail(Instant now, Rail& rail);
  void handle_link_up(Instant now, Rail& rail);
  static bool any_usable(const Peer& peer);
  void allow_kept_out(Instant now, Peer& peer);
  void settle_rail(Instant now, Rail& rail, bool was_usable);
  void arm_upkeep(Instant now, Rail& rail);
  void report(Rail& rail);
  void evacuate(Rail& rail);
  void evacuate_packet(Rail& rail, Packet& packet);
  void drop_probes(Rail& rail, std::size_t kept = 0);
  void handle_link_event(Instant now, std::size_t module, nic::PortEvent::Kind kind);
  void set_drained(Instant now, Rail& rail, bool drained);
  std::uint32_t modules_named(std::string_view nic) const;
  bool needs(const Peer& peer, std::uint32_t modules) const;

  // --- rail_check.cc, rail_answer.cc
  void check_new_rail(Instant now, Peer& peer);
  void start_asking(Instant now, Peer& peer, Duration limit, Duration delay);
  static Checking& checking_of(Peer& peer);
  void arm_asking(Instant now, Asking& asking, Instant due);
  void rearm(Instant now, Timer& timer, Duration stay);
  wire::CheckRound next_round(Peer& peer);
  void handle_check_due(Instant now, Peer& peer, const Timer& timer);
  void ask(Peer& peer);
  static std::size_t check_bytes(const Rail& rail, wire::CheckSize size);
  void ask_on(const Rail& rail, wire::CheckSize size);
  void send_check(const Rail& rail, wire::CheckSize size, std::span<std::byte> packet);
  void end_asking(Peer& peer);
  void end_checking(Peer& peer);
  static void show_finding(Instant now, const Rail& rail, RailView& view);
  static void forget_fault(const Rail& rail);
  std::size_t least_length(const Rail& rail, wire::CheckSize size) const;
  Verdict handle_check(Instant now, Rail& rail, const wire::PacketHeader& header);
  void take_question(Instant now, const Rail& rail, const wire::Check& check, bool elsewhere);
  void take_answer(const Rail& rail, const wire::Checked& checked, bool elsewhere);
  bool came_by_another_nic(std::span<const std::byte> part) const;
  void tell_other_nic(const Rail& rail, RailFinding found);
  void answer_check(Instant now, Peer& peer);
  void answer_on(const Rail& rail, wire::CheckSize size);
  Verdict handle_unknown(Instant now, const wire::PacketHeader& header);
  void send_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                               const wire::Check& check);
  void repeat_unknown_peer_reply(const nic::PortEvent& event);
  Verdict take_unknown_peer_reply(Instant now, const wire::PacketHeader& header,
                                  const wire::Checked& checked);
  // That we are not the one who was asked, to be said when the address is resolved.
  struct UnknownPeerReply {
    std::size_t module = 0;
    std::uint8_t rail = 0;
    wire::CheckRound round;
  };
  static constexpr std::uint64_t kUnknownPeerCookie = ~std::uint64_t{0};  // no peer has it

  // --- liveness.cc
  void doubt(Instant now, Peer& peer);
  bool is_silent(Instant now, const Peer& peer) const;
  static bool was_met_on(const Rail& rail);
  LivenessProbe& liveness_probe_of(Instant now, Peer& peer);
  static void set_heard(Peer& peer, Instant at);
  static void clear_liveness_probe(Peer& peer);
  void ask_who_it_is(Peer& peer);
  void note_unknown_peer_reply(Instant now, const Rail& rail);
  void note_refusal(Instant now, const Rail& rail, const nic::PortEvent& event);
  static bool quotes_us(const Peer& peer, const nic::PortEvent& event);
  void ask_whether_it_lives(Instant now, Peer& peer);
  void handle_liveness_due(Instant now, Peer& peer);
  static bool nobody_is_left(const Peer& peer);

  // --- path.cc
  void settle_path(Instant now, Rail& rail);
  void send_path_probe(Instant now, Rail& rail);
  void drop_lost_probe(Instant now, Rail& rail, Packet& probe);
  void resume(Rail& rail, Packet& packet);

  // --- handshake.cc
  Peer* make_peer(Instant now, const nic::Address& command, std::uint8_t module);
  Peer& begin_peer(Instant now, std::unique_ptr<Peer> made, const nic::Address& command) noexcept;
  void start_resolving(Rail& rail, ChannelKind kind, const nic::Address& address);
  void handle_events(Instant now);
  void handle_event(Instant now, std::size_t module, ChannelKind kind, const nic::PortEvent& event);
  void handle_refusal(Instant now, ChannelKind kind, const nic::PortEvent& event);
  Peer* peer_meant(ChannelKind kind, std::uint64_t cookie) const;
  void resolve_answer(Peer& peer);
  void handle_resolution(Instant now, std::size_t module, ChannelKind kind,
                         const nic::PortEvent& event);
  void handle_resolved(Instant now, Peer& peer);
  Verdict handle_hello(Instant now, const wire::PacketHeader& header,
                       std::span<const std::byte> body);
  Verdict handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                         std::span<const std::byte> body);
  bool may_call(const Peer& peer) const;
  std::optional<wire::Hello> read_hello(const wire::PacketHeader& header,
                                        std::span<const std::byte> body) const;
  bool may_introduce(Peer& peer, const wire::Hello& hello);
  bool decline(Peer& peer, const wire::Hello& hello) const;
  void introduce(Peer& peer);
  void call(Instant now, Peer& peer);
  void answer(Peer& peer);
  void handle_proof(Instant now, Peer& peer);
  void prove(Instant now, Peer& peer);
  void repeat_hello(Instant now, Peer& peer, bool crossed);
  std::uint32_t new_proof();
  Packet* make_hello(Peer& peer, std::size_t packet_bytes);
  std::size_t write_hello(const Peer& peer, bool as_answer, std::byte* out) const;
  wire::Hello describe(const Peer& peer, bool as_answer = false) const;
  std::size_t nics_to_tell() const;
  std::size_t first_address_of(std::size_t module) const;
  bool several_nics(std::size_t told) const;
  void note_names(Peer& peer, std::span<const wire::NicInfo> nics);
  wire::NicInfo describe(const channel::Module& module) const;

  // --- initiator.cc
  bool has_family_of(const nic::Address& address) const;
  std::uint8_t module_for(const nic::Address& address) const;
  bool leads_here(std::uint64_t host, const nic::Address& address) const;
  void forget_own_addresses(std::uint64_t host, std::span<wire::NicInfo> nics) const;
  std::optional<std::uint8_t> module_called(const wire::Hello& hello) const;
  bool is_own_port(const nic::Address& address) const;
  std::optional<std::uint8_t> other_module(const Peer& peer) const;
  bool in_trouble(std::size_t module) const {
    return ((links_down_ | drained_) >> module & 1) != 0;
  }
  bool try_next_nic(Peer& peer);
  void handle_no_way(Peer& peer);
  void aim_home(Peer& peer);
  // Its home rail leads where it is called.
  static bool is_aimed(const Peer& peer) {
    return nic::same_port(peer.home.remote, peer.command_address);
  }
  void leave_home(Peer& peer);
  void aim_answer(Peer& peer, std::uint8_t module, std::uint8_t from);
  void handle_answer_resolved(Peer& peer, std::size_t module, const nic::PortEvent& event);
  void answer_at_home(Peer& peer);
  void adopt_answer(Peer& peer);
  void leave_calls_by(std::size_t module);
  Peer* known_elsewhere(const nic::Address& address);
  bool is_at(const Peer& peer, const nic::Address& address) const;

  // --- acceptor.cc
  Peer* peer_for_hello(Instant now, const wire::Hello& hello);
  Peer* new_caller(Instant now, const wire::Hello& hello);
  void note_said(Instant now, Peer& peer, const wire::PacketHeader& header,
                 const wire::Hello& hello, std::span<const std::byte> body);
  void hold_early_data(PendingHello& said, std::span<const std::byte> body);
  void forget_said(Peer& peer);
  void deliver_early_data(Instant now, Peer& peer);
  Peer* called_at(const wire::Hello& hello) const;
  bool our_call_wins(const wire::Hello& hello) const;
  void adopt_caller(Peer& peer);
  bool may_be_caller_at(const Peer& peer, const nic::Address& address) const;
  void adopt_caller_at(Peer& peer, const nic::Address& address);
  bool is_superseded(const Peer& caller) const;
  void drop_superseded(const Peer& peer);
  void leave_half_open(const Peer& peer);
  std::size_t max_half_open() const;
  bool has_room_for_caller(Instant now);
  bool renew(Instant now, const Caller& caller);
  void drop_oldest_caller();
  void announce(const Peer& peer);
  void drop_silent_callers(Instant now);
  void ask_idle_peers(Instant now);

  // --- lifecycle.cc
  void handle_timers(Instant now, bool only_acks);
  void handle_eviction(Instant now, Packet& packet);
  void warn_peer_unresponsive(Instant now, const Peer& peer, bool calling);
  void handle_alarm(Instant now, Peer& peer);
  void arm(Instant now, Peer& peer);
  bool died(const Peer& peer) const;
  Duration alarm_timeout() const;
  Duration look() const;
  bool has_pending(const Peer& peer) const;
  std::size_t in_flight(const Peer& peer) const;
  bool has_pending_tx(const Peer& peer) const;
  bool nothing_to_deliver(const Peer& peer) const;
  void set_phase(Peer& peer, Phase phase);
  void begin_leaving(Instant now, Peer& peer);
  void handle_bye(Peer& peer);
  void end_peer(Peer& peer, Status why);
  void take_back_packets(Peer& peer);
  void take_back_packets(Rail& rail);
  void take_back(Peer& peer, channel::PacketQueue& queue);
  void stop_timers(Rail& rail);
  void withdraw(const Rail& rail, Packet& packet);
  void release(const Rail& rail, Packet& packet);
  void discard(Peer& peer);
  void discard_leaving();
  void update_loss_timer(Instant now, Rail& rail);

  // Channels in one row: the command channels of all modules, then their data channels.
  static constexpr std::size_t kRow = wire::kMaxNics;
  static std::size_t place_of(std::size_t module, ChannelKind kind) {
    return kind == ChannelKind::kCommand ? module : kRow + module;
  }
  static channel::Module& module_of(const Rail& rail) { return *rail.nic; }
  static Channel& command(const Rail& rail) { return rail.nic->channel(ChannelKind::kCommand); }
  static Channel& data(const Rail& rail) { return rail.nic->channel(ChannelKind::kData); }
  // Of the NIC that the other end sends to.
  std::uint16_t credit(const Rail& rail) const {
    if (rail.peer.rails != nullptr) [[unlikely]]
      return credits_[upkeep_of(rail).here];
    return credits_[rail.module];
  }
  Rail& rail_of(const Timer& timer) { return *peers_.at(timer.peer)->rail(timer.rail); }
  template <typename Visit>
  void for_each_channel(Visit visit) const {
    for (const auto& module : modules_) {
      visit(module->channel(ChannelKind::kCommand));
      visit(module->channel(ChannelKind::kData));
    }
  }

  Config config_;
  KeyedRandom random_;
  std::uint64_t epoch_;  // this incarnation
  std::uint64_t host_;   // of this process (wire.md 5.11)
  std::vector<std::unique_ptr<channel::Module>> modules_;
  std::array<Channel*, 2 * kRow> row_{};
  std::size_t last_received_ = 0;  // in the turn before
  Instant sends_much_until_{};     // unless as many leave again
  Instant quiet_since_{};          // when the last channel fell silent
  Instant quiet_asked_{};          // when quiet channels were asked,
  Instant quiet_due_{};            // and are to be asked again,
  Instant idle_due_{};             // and those of NICs that are quiet altogether,
  Instant stream_due_{};           // and those that are only there in case:
  std::uint32_t streams_ = 0;      // a bit for the place of each of their channels
  std::size_t nics_told_;          // that peers who come now hear of: the first ones
  channel::PacketPool packets_;
  reliability::Hotel<Packet> hotel_;
  reliability::WindowRings rings_;
  Pool<reliability::ArrivalBitmap> arrival_bitmaps_;
  Pool<message::IdBitmap> id_bitmaps_;
  Pool<message::SendQueues> send_queues_;
  Pool<message::Parts> send_parts_;
  Pool<message::Begun> begun_;
  message::Matcher matcher_;  // of space 0
  message::SpaceMatchers space_matchers_;
  message::Regions regions_;
  message::InboxCounters inbox_counters_;
  message::OutboxCounters outbox_counters_;
  reliability::LinkOptions link_options_;
  reliability::LinkResources link_resources_;
  std::uint64_t window_;       // unexpected memory of one peer that it uses before it is told more
  message::Reserve reserve_;   // beyond the peers' own shares
  std::uint32_t eager_bytes_;  // of one message, before it is granted
  ReusedMemory held_;          // messages that have begun or wait to be taken
  Slab<message::ShortMessage> shorts_;  // the same of short ones
  Standstill standstill_;               // while peers are blocked
  message::InboxResources inbox_resources_;
  message::OutboxResources outbox_resources_;

  reliability::Floor<Timer> ack_timers_;
  reliability::Hotel<Timer> alarms_;  // loss timers and alarms
  ReadyList ready_;
  AckList ack_now_;
  bool acks_waited_ = false;  // some of them, at the end of the last turn
  std::uint64_t messages_told_ = 0;
  failover::RailNews rail_news_;  // outlives the notes of it
  PeerTable peers_;
  std::deque<PeerId> callers_;     // for accept()
  std::vector<Caller> half_open_;  // not proved yet, oldest first
  std::deque<PeerId> gone_;        // oldest first: reused when the table is full
  std::vector<PeerId> leaving_;    // disconnected and gone: freed at the end of the turn
  std::uint32_t peers_born_ = 0;
  bool closing_ = false;

  std::uint64_t rails_blamed_ = 0;  // left because they were silent
  // A bit for the place of each channel.
  std::uint32_t all_ = 0;
  std::uint32_t active_channels_ = 0;  // something came lately
  std::uint32_t attended_ = 0;         // all but those of further addresses at which nobody is met,
  Instant unattended_due_ = Instant::max();  // when those are to be asked; never: there is none
  std::uint32_t posted_ = 0;                 // packets may wait in it
  std::uint32_t kept_ = 0;                   // received packets wait in it
  ReceiveBackpressure pause_;

  std::uint32_t drained_ = 0;     // by our operator: a bit for each module
  std::uint32_t links_down_ = 0;  // a bit for each module
  std::size_t resolving_ = 0;     // addresses the NICs have been asked about,
  std::array<std::size_t, wire::kMaxNics> resolving_at_{};  // and each of them
  Instant resting_until_ = Instant::max();  // when what was not asked this turn is to be asked
  bool waits_ = false;                      // in a packet, what was sent since the last turn
  std::size_t packets_per_turn_ = Channel::kBatch;  // see nic::PortLimits
  std::size_t retransmits_left_ = 0;                // this turn
  std::uint32_t ports_full_ = 0;  // this turn, a bit for each module: refused what was not to wait
  std::size_t blocked_on_pool_ = 0;            // in ready_, for want of a packet only
  Instant news_due_;                           // when the NICs' events are looked at next
  unsigned turns_since_news_ = kTurnsPerNews;  // they were
  bool moved_ = false;                         // this turn a port took something
  unsigned fruitless_ = 0;                     // turns in a row that left work, and moved nothing
  std::array<nic::PortEvent, 16> events_;
  wire::FrameList frames_;  // of the datagram in hand
  wire::Frame bye_;         // the one among them, if there is any
  // How the datagram in hand came: alone, with others, or with some that had been kept.
  enum class Came : std::uint8_t { kAlone, kTogether, kBehindKept };
  Came came_ = Came::kBehindKept;
  std::size_t current_module_ = 0;  // the NIC it came through
  Channel* channel_in_hand_ = nullptr;
  std::span<const nic::Incoming> current_batch_;  // of which it is one
  bool told_other_nic_ = false;
  DeferredAck deferred_ack_;
  std::uint64_t tick_ = 0;    // now / kTick
  Instant polled_until_;      // what had come by then has been taken
  Duration unpolled_{};       // how long nobody had looked before this turn
  wire::PollGap poll_gap_{};  // that, as it is told to the peers
  std::uint32_t heard_this_tick_ = 0;
  std::uint32_t heard_last_tick_ = 0;
  std::array<std::uint16_t, wire::kMaxNics> credits_{};  // for each peer: see share_credit()
  Instant unresponsive_warned_ = Instant() - kUnresponsiveWarned;  // see warn_peer_unresponsive()
  Instant idle_peers_due_ = Instant::min();                        // see ask_idle_peers()
  std::optional<UnknownPeerReply> unknown_peer_reply_;
  Instant next_unknown_peer_reply_ = Instant::min();
  Stats stats_;
  std::uint64_t rtt_ns_ = 0;
};

}  // namespace pullman::engine
