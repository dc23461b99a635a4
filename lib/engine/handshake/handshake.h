// How two engines meet (wire.md 5): HELLO, WELCOME and the proof that both got there
// (handshake.cc); by which NIC a peer is called and answered (initiator.cc); who a HELLO is from,
// and what it brought (acceptor.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/keyed_random.h"
#include "engine/frames/frame_handler.h"
#include "engine/handshake/connected.h"
#include "engine/session/accept_queue.h"

namespace pullman::engine {

// What a new peer is made with, and told.
struct PeerParts {
  const reliability::LinkOptions& link;
  const reliability::LinkResources& link_resources;
  const message::InboxResources& inbox;
  const message::OutboxResources& outbox;
  channel::PacketPool& packets;
  std::uint32_t eager_bytes;  // of one message, before it is granted
};

class Handshake {
 public:
  // `epoch` and `host`: of this engine and its process.
  Handshake(const Config& config, std::uint64_t epoch, std::uint64_t host, KeyedRandom& random,
            const PeerParts& parts, PeerTable& peers, NicTable& nics, ChannelPoller& poller,
            CreditAllocator& credits, Resolver& resolver, ReadyPeers& ready, AckScheduler& acks,
            PacketSender& sender, AcceptQueue& accepts, PeerLifecycle& lifecycle,
            RailManager& rails, NicExchange& exchange, FrameHandler& frame_handler)
      : config_(config),
        epoch_(epoch),
        host_(host),
        random_(random),
        parts_(parts),
        peers_(peers),
        nics_(nics),
        poller_(poller),
        credits_(credits),
        resolver_(resolver),
        ready_(ready),
        acks_(acks),
        sender_(sender),
        accepts_(accepts),
        lifecycle_(lifecycle),
        rails_(rails),
        exchange_(exchange),
        frame_handler_(frame_handler) {}

  Connected connect(Instant now, const nic::Address& address);

  // --- packets that come

  // `body`: of the packet, whose frames are in the list; the HELLO is its first. May make a peer,
  // or end one that gives it its place.
  wire::Verdict handle_hello(Instant now, const wire::PacketHeader& header, wire::FrameList& frames,
                             std::span<const std::byte> body);
  wire::Verdict handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                               std::span<const std::byte> body);
  // The first packet that knows our proof: its sender means this connection, and what rode with its
  // HELLO is for it.
  void handle_proof(Instant now, Peer& peer);
  // A process that we have called, and that has answered, had called us before: whether a late
  // proof of the other call counts for nothing (wire.md 5.6).
  bool is_superseded(const Peer& caller) const;

  // --- HELLOs that leave

  // Whether a HELLO is to be sent now. A connection to a process from which an earlier one is still
  // taking leave waits until that has ended: there is one at a time (wire.md 5.8).
  bool may_call(const Peer& peer) const;
  // Sends one, if it may.
  void call(Instant now, Peer& peer);
  // A HELLO that is to leave again says by which NIC it leaves.
  void rewrite_hello(Peer& peer) const;
  // A HELLO got no answer in time: it is sent again, or by another NIC.
  void handle_call_overdue(Instant now, Peer& peer, Packet& packet);
  // The NIC has no link: a peer that is called by it is called by another.
  void handle_link_down(std::size_t slot);

  // --- destinations

  // The home rail's came in: the next step of the handshake that was waiting for it.
  void handle_home_resolved(Instant now, Peer& peer);
  // Our NIC knows no way to the peer's home address.
  void handle_no_way(Peer& peer);
  // Where a pending HELLO is to be answered has become a destination, or not; it may mean another
  // place by now.
  void handle_answer_resolved(Peer& peer, std::size_t slot, const nic::PortEvent& event);

 private:
  // Of two calls that cross one is ignored by its receiver until that one's own has been repeated
  // so often.
  static constexpr std::uint64_t kTimeoutsBeforeAnswer = 3;
  // A call unanswered so often, and for so long, leaves by another NIC. Not sooner: a peer that is
  // known by the address of its second NIC is called by that of its first all the same.
  static constexpr std::uint64_t kTimeoutsBeforeOther = 2;
  static constexpr Duration kTimeBeforeOther = std::chrono::milliseconds(250);

  Peer* make_peer(Instant now, const nic::Address& command, std::uint8_t module);
  Peer& begin_peer(Instant now, std::unique_ptr<Peer> made, const nic::Address& command) noexcept;
  std::uint32_t new_proof();

  // handshake.cc
  wire::Hello describe(const Peer& peer, bool as_answer = false) const;
  std::size_t write_hello(const Peer& peer, bool as_answer, std::byte* out) const;
  Packet* make_hello(Peer& peer, std::size_t packet_bytes);
  void repeat_hello(Instant now, Peer& peer, bool crossed);
  void answer(Peer& peer);
  bool may_introduce(Peer& peer, const wire::Hello& hello);
  bool decline(Peer& peer, const wire::Hello& hello) const;
  void introduce(Peer& peer);
  void prove(Instant now, Peer& peer);

  // initiator.cc
  std::optional<std::uint8_t> other_module(const Peer& peer) const;
  bool try_next_nic(Peer& peer);
  void aim_home(Peer& peer);
  void leave_home(Peer& peer);
  void aim_answer(Peer& peer, std::uint8_t module, std::uint8_t from);
  void adopt_answer(Peer& peer);
  Peer* find_elsewhere(const nic::Address& address);
  bool is_at(const Peer& peer, const nic::Address& address) const;

  // acceptor.cc
  Peer* peer_for_hello(Instant now, const wire::Hello& hello);
  Peer* new_caller(Instant now, const wire::Hello& hello);
  Peer* called_at(const wire::Hello& hello) const;
  bool our_call_wins(const wire::Hello& hello) const;
  void note_hello(Instant now, Peer& peer, const wire::PacketHeader& header,
                  const wire::Hello& hello, std::span<const std::byte> body);
  void hold_early_data(PendingHello& said, std::span<const std::byte> body);
  void deliver_early_data(Instant now, Peer& peer);
  void adopt_caller(Peer& peer);
  bool may_be_caller_at(const Peer& peer, const nic::Address& address) const;
  void adopt_caller_at(Peer& peer, const nic::Address& address);
  void drop_superseded(const Peer& peer);
  bool has_room_for_caller(Instant now);
  void drop_oldest_caller();
  void drop_silent_callers(Instant now);

  const Config& config_;
  const std::uint64_t epoch_;
  const std::uint64_t host_;
  KeyedRandom& random_;
  const PeerParts parts_;
  PeerTable& peers_;
  NicTable& nics_;
  ChannelPoller& poller_;
  CreditAllocator& credits_;
  Resolver& resolver_;
  ReadyPeers& ready_;
  AckScheduler& acks_;
  PacketSender& sender_;
  AcceptQueue& accepts_;
  PeerLifecycle& lifecycle_;
  RailManager& rails_;
  NicExchange& exchange_;
  FrameHandler& frame_handler_;

  std::uint32_t peers_born_ = 0;
};

}  // namespace pullman::engine
