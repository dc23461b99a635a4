// The relay of a process: takes what its engine sends by its ports, and what neighbours pass on, to
// the next hop, as messages of the library in a space of their own (decision 0038). Only peers that
// are connected can use it; each connection keeps its order, its flow control and its key. Between
// the two ends relayed packets are datagrams: some are lost, and their link sends them again.
//
// It belongs to the caller of the engine, which calls progress() behind each turn. Nothing here
// blocks, reads a clock, or throws in a turn.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "nic/relay/relay_port.h"
#include "relay/routes.h"
#include "relay/share.h"
#include "wire/relay.h"

namespace pullman::relay {

// The space of relayed packets between neighbours.
inline constexpr std::uint8_t kSpace = kSpaces - 2;
// The longest relayed packet, without its head.
inline constexpr std::size_t kLongestPacket = 8972;
// How much shorter a relayed packet is than one of the NIC, so that both heads fit into that.
inline constexpr std::size_t kRoom = 192;

class Relay {
 public:
  // `own` is the address of the command channel of this process.
  Relay(std::vector<Route> routes, const Config& config, const nic::Address& own);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Opens the ports, beside those of that NIC, for the engine that is then attached. The relay
  // outlives the engine. Once.
  engine::NicPorts open(const engine::NicPorts& beside);
  void attach(Instant now, engine::Engine& engine);

  // Goes on behind a turn of the engine, and has it make another one if something has come for it.
  // Returns the number of packets received in that.
  std::size_t progress(Instant now) noexcept;
  // Returns when progress() is to be called even if the engine has nothing to do.
  Instant next_due() const;

  // Returns the address to connect() to: the same one if a NIC reaches it, the relayed one if only
  // the relay does or a route is for it; nothing if nothing reaches it.
  std::optional<nic::Address> address_to_call(const nic::Address& address) const;
  // Returns the address of the next hop to a relayed address; empty if there is none now.
  std::string next_hop(const nic::Address& relayed) const;

  // The number of receives that are posted while nothing has arrived.
  static constexpr std::size_t kArrivals = 64;
  // Returns whether nothing is under way to a neighbour or has arrived, and all is given back.
  bool is_idle() const {
    return shares_.empty() && sent_.size() == unused_.size() && arrived_.empty() &&
           unposted_.empty();
  }

 private:
  struct Hop {
    nic::Address via;
    PeerId peer;
    bool connected = false;  // or is being connected
  };
  // A message to a neighbour.
  struct Sent {
    Request request;
    std::vector<std::byte> bytes;
    PeerId to;
    nic::Address origin;
    std::vector<Sent*>* done = nullptr;
  };
  // A receive that is posted.
  struct Arrival {
    Request request;
    std::vector<std::byte> bytes;
    std::vector<Arrival*>* arrived = nullptr;
  };
  // A process on the same link that was called to pass something on to it.
  struct Called {
    PeerId peer;
    bool connected = false;
    Instant due;
  };

  // Of messages under way, of processes called.
  static constexpr std::size_t kMaxSent = 1024;
  static constexpr std::size_t kMaxCalled = 256;
  // The pause before a hop that is gone is connected to again.
  static constexpr Duration kPause = std::chrono::seconds(1);
  // How long what was put into our ports may wait for a turn.
  static constexpr Duration kSoon = std::chrono::microseconds(50);

  void step(Instant now);
  void tend_hops(Instant now);
  bool connect(Instant now, const nic::Address& address, PeerId& peer);
  void post(Instant now, Arrival& arrival);
  void collect_sent(Instant now);
  void take_arrived(Instant now);
  void handle(Instant now, PeerId from, std::span<const std::byte> bytes) noexcept;
  void send_own(Instant now);
  std::optional<PeerId> hop_for(Instant now, const nic::Address& to, PeerId from);
  std::optional<PeerId> on_same_link(Instant now, const nic::Address& to);
  bool pass(Instant now, PeerId to, const wire::RelayHead& head, std::span<const std::byte> packet);
  Sent* free_slot();
  void end_share(Instant now, Sent& sent);
  bool stalled(Instant now, PeerId neighbour) const;
  static std::uint64_t key_of(PeerId peer) {
    return std::uint64_t{peer.index} << 32 | peer.generation;
  }
  const Route* route_for(const nic::Address& to) const;
  bool has_default() const { return !routes_.empty() && !routes_.back().to; }
  nic::RelayPort& port(bool for_data) const { return for_data ? *data_ : *command_; }
  Stats& stats() const { return engine_->neighbours().stats(); }

  const std::vector<Route> routes_;
  const nic::Address own_;
  const Duration patience_;  // with a neighbour that takes nothing, if there is another
  std::vector<Hop> hops_;    // one for each route, or the same neighbour twice
  LearnedRoutes learned_;
  std::map<nic::Address, Called, nic::AddressOrder> called_;
  std::unordered_map<std::uint64_t, Share> shares_;  // of neighbours with messages under way

  engine::Engine* engine_ = nullptr;
  nic::RelayPort* command_ = nullptr;  // the engine's
  nic::RelayPort* data_ = nullptr;
  std::deque<Sent> sent_;
  std::vector<Sent*> unused_;
  std::vector<Sent*> done_;  // finished since the last turn
  std::deque<Arrival> arrivals_;
  std::vector<Arrival*> arrived_;   // likewise
  std::vector<Arrival*> taken_;     // those that are being taken
  std::vector<Arrival*> unposted_;  // those that were taken
  Instant turned_ = Instant::min();
  Instant tend_due_ = Instant::min();
  bool closed_ = false;  // the engine takes no more receives
};

}  // namespace pullman::relay
