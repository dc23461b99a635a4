// Adds NICs, and changes their addresses, while the engine runs (wire.md 9.11).
//
// A NIC keeps its number for as long as the engine lives; when its address changes it gets new
// ports under the same number. Peers are told the new list of NICs. The engine of the lower epoch
// decides which NICs that no rail uses are paired into new rails.
#pragma once

#include <memory>

#include "engine/frames/ack_handler.h"
#include "engine/nics/nic_ports.h"
#include "engine/port_events.h"

namespace pullman::engine {

class NicChanges {
 public:
  NicChanges(PeerTable& peers, NicTable& nics, ChannelPoller& poller, CreditAllocator& credits,
             Resolver& resolver, ReadyPeers& ready, PacketReclaimer& reclaimer,
             StatelessReplies& replies, PeerLifecycle& lifecycle, RailManager& rails,
             AckHandler& ack_handler, Handshake& handshake, PortEvents& port_events)
      : peers_(peers),
        nics_(nics),
        poller_(poller),
        credits_(credits),
        resolver_(resolver),
        ready_(ready),
        reclaimer_(reclaimer),
        replies_(replies),
        lifecycle_(lifecycle),
        rails_(rails),
        ack_handler_(ack_handler),
        handshake_(handshake),
        port_events_(port_events) {}

  // Adds a NIC in the next slot, or replaces the one in an existing slot.
  void set(Instant now, std::size_t slot, std::unique_ptr<channel::Module> module);
  // Swaps the ports of the two slots, because the address of `to` is gone.
  void move(Instant now, std::size_t from, std::size_t to);
  // Returns whether a peer that has not ended has a rail on this NIC. Callers that have not proved
  // themselves do not count, since anybody can call.
  bool is_in_use(std::size_t slot) const;

 private:
  template <typename Visit>
  void for_each_rail_by(std::size_t slot, Visit visit);
  void leave_module(Instant now, std::size_t slot);
  void enlist(std::size_t slot);
  void join_module(Instant now, std::size_t slot);
  void tell_peers();
  void forget_channels(std::size_t slot);
  void drop_callers_at(std::size_t slot);
  void detach(Instant now, Rail& rail);
  void attach(Instant now, Rail& rail);

  PeerTable& peers_;
  NicTable& nics_;
  ChannelPoller& poller_;
  CreditAllocator& credits_;
  Resolver& resolver_;
  ReadyPeers& ready_;
  PacketReclaimer& reclaimer_;
  StatelessReplies& replies_;
  PeerLifecycle& lifecycle_;
  RailManager& rails_;
  AckHandler& ack_handler_;
  Handshake& handshake_;
  PortEvents& port_events_;
};

}  // namespace pullman::engine
