// Exchanges the NICs of two engines while they are connected (wire.md 9.11): WAYS once, and a new
// list whenever a NIC is added or has another address.
#pragma once

#include <cstdint>
#include <span>

#include "engine/rails/rail_manager.h"
#include "engine/send/packet_sender.h"

namespace pullman::engine {

// The least packet sizes, in bytes, that a peer may announce.
inline constexpr std::size_t kLeastCommandBytes = Config::kLeastPacketBytes;
inline constexpr std::size_t kLeastDataBytes = Config::kLeastPacketBytes;
static_assert(kLeastCommandBytes >= reliability::Link::kAckBytes);
static_assert(kLeastDataBytes >= reliability::PathSize::kLeast);

class NicExchange {
 public:
  // `epoch` names this engine, `host` the host of its process.
  NicExchange(const Config& config, std::uint64_t epoch, std::uint64_t host, const NicTable& nics,
              Resolver& resolver, ReadyPeers& ready, PacketSender& sender,
              PacketReclaimer& reclaimer, Alarms& alarms, const PollClock& clock,
              PeerLifecycle& lifecycle, RailManager& rails)
      : config_(config),
        epoch_(epoch),
        host_(host),
        nics_(nics),
        resolver_(resolver),
        ready_(ready),
        sender_(sender),
        reclaimer_(reclaimer),
        alarms_(alarms),
        clock_(clock),
        lifecycle_(lifecycle),
        rails_(rails) {}

  // Sends our list in a packet of its own, beyond the window: until it has arrived, nothing else
  // may. Returns false if the next turn must try again.
  bool send_list(Instant now, Peer& peer, std::uint32_t full_ports);
  void drop_lost_list(Instant now, Rail& rail, Packet& packet);
  // Handles the peer's list. Returns false if it is not valid.
  bool handle_list(Peer& peer, const wire::Frame& frame);
  // Takes a list that waited, since too many came at once; the peer has several rails.
  void handle_due(Instant now, Peer& peer);
  void handle_ways(Peer& peer, const wire::Frame& frame);
  // Remembers the addresses that a peer calls its own, if Config::believe_addresses says so.
  void note_names(Peer& peer, std::span<const wire::NicInfo> nics) const;
  // Resolves those addresses of the other end that our NIC has not resolved yet.
  void aim(Rail& rail);

 private:
  Rail* rail_for_list(Peer& peer, std::uint32_t full_ports);
  wire::NicList list_for(Peer& peer);
  void take_newest_list(Instant now, Peer& peer);
  void take_list(Instant now, Peer& peer, const wire::NicList& list);
  void note_address(Instant now, Rail& rail, std::span<const wire::NicInfo> before,
                    const wire::NicInfo& nic);
  void aim_anew(Instant now, Rail& rail, const wire::NicInfo& nic);

  const Config& config_;
  const std::uint64_t epoch_;
  const std::uint64_t host_;
  const NicTable& nics_;
  Resolver& resolver_;
  ReadyPeers& ready_;
  PacketSender& sender_;
  PacketReclaimer& reclaimer_;
  Alarms& alarms_;
  const PollClock& clock_;
  PeerLifecycle& lifecycle_;
  RailManager& rails_;
};

}  // namespace pullman::engine
