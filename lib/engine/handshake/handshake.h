// The handshake of two engines (wire.md 5): HELLO, WELCOME, and the proof that both have arrived
// (handshake.cc); the NIC by which a peer is called and answered (initiator.cc); the peer that a
// HELLO is from, and the early data in it (acceptor.cc).
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

// What a new peer is made of, and is told.
struct PeerParts {
  const reliability::LinkOptions& link;
  const reliability::LinkResources& link_resources;
  const message::InboxResources& inbox;
  const message::OutboxResources& outbox;
  channel::PacketPool& packets;
  std::uint32_t eager_bytes;  // that a message may send before its GRANT
};

class Handshake {
 public:
  // `epoch` names this engine, `host` the host of its process. The job has `keys` keys; 0: packets
  // are not protected.
  Handshake(const Config& config, std::uint64_t epoch, std::uint64_t host, KeyedRandom& random,
            const PeerParts& parts, PeerTable& peers, NicTable& nics, ChannelPoller& poller,
            CreditAllocator& credits, Resolver& resolver, ReadyPeers& ready, AckScheduler& acks,
            PacketSender& sender, AcceptQueue& accepts, PeerLifecycle& lifecycle,
            RailManager& rails, NicExchange& exchange, const MemorySetup& memory,
            FrameHandler& frame_handler, std::size_t keys)
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
        memory_(memory),
        frame_handler_(frame_handler),
        keys_(keys) {}

  Connected connect(Instant now, const nic::Address& address);

  // --- packets that come

  // Handles a HELLO. `key` is that of the job's keys which it was sealed with, `body` the packet's,
  // and `frames` are its frames, of which HELLO is the first. May make a peer, or end one whose
  // place the new one takes.
  wire::Verdict handle_hello(Instant now, const wire::PacketHeader& header, std::uint8_t key,
                             wire::FrameList& frames, std::span<const std::byte> body);
  wire::Verdict handle_welcome(Instant now, Peer& peer, const wire::PacketHeader& header,
                               std::uint8_t key, std::span<const std::byte> body);
  // Handles the first packet that carries our proof: its sender means this connection, so the early
  // data of its HELLO is delivered.
  void handle_proof(Instant now, Peer& peer);
  // Returns whether a late proof of this caller counts for nothing, since we have called the same
  // process and it has answered (wire.md 5.6).
  bool is_superseded(const Peer& caller) const;

  // --- HELLOs that leave

  // Returns whether a HELLO is to be sent now. While an earlier connection to the same address is
  // ending, a new one waits: there is one at a time (wire.md 5.8).
  bool may_call(const Peer& peer) const;
  // Sends a HELLO if may_call().
  void call(Instant now, Peer& peer);
  // Rewrites a HELLO that is to leave again, since it names the NIC by which it leaves.
  void rewrite_hello(Peer& peer) const;
  // Sends a HELLO again that got no answer in time, by the same NIC or another one.
  void handle_call_overdue(Instant now, Peer& peer, Packet& packet);
  // Calls the peers that are called by a NIC whose link is down by another one.
  void handle_link_down(std::size_t slot);

  // --- destinations

  // Takes the next step of the handshake, which waited for the home rail's destination.
  void handle_home_resolved(Instant now, Peer& peer);
  // Our NIC has no route to the peer's home address: tries the peer's next address, calls by
  // another NIC, or ends the peer.
  void handle_no_way(Peer& peer);
  // Our NIC has resolved, or could not resolve, the address to which a pending HELLO is answered.
  // That may be another address by now.
  void handle_answer_resolved(Peer& peer, std::size_t slot, const nic::PortEvent& event);

 private:
  // When two calls cross, the engine of the lower epoch ignores the other's HELLO until its own has
  // timed out this many times.
  static constexpr std::uint64_t kTimeoutsBeforeAnswer = 3;
  // A call leaves by another NIC when it has timed out this many times and been unanswered for this
  // long. Not sooner: a call to the address of a peer's second NIC would leave by our first one.
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
  bool note_hello(Instant now, Peer& peer, const wire::PacketHeader& header, std::uint8_t key,
                  const wire::Hello& hello, std::span<const std::byte> body);
  bool is_protected() const { return keys_ != 0; }
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
  const MemorySetup& memory_;
  FrameHandler& frame_handler_;
  const std::size_t keys_;  // 0: packets are not protected

  std::uint32_t peers_born_ = 0;
};

}  // namespace pullman::engine
