// What NICs have to say beside packets: addresses that are resolved, links, refusals by hosts.
#pragma once

#include <array>
#include <chrono>

#include "engine/handshake/handshake.h"
#include "engine/nics/channel_poller.h"
#include "engine/session/liveness.h"
#include "engine/session/unknown_peer_replies.h"

namespace pullman::engine {

class PortEvents {
 public:
  PortEvents(NicTable& nics, ChannelPoller& poller, Resolver& resolver, UnknownPeerReplies& replies,
             Liveness& liveness, RailManager& rails, NicExchange& exchange, Handshake& handshake)
      : nics_(nics),
        poller_(poller),
        resolver_(resolver),
        replies_(replies),
        liveness_(liveness),
        rails_(rails),
        exchange_(exchange),
        handshake_(handshake) {}

  // Once a turn, in which so many packets were received. To look costs a system call a port, so
  // events wait a little, longer where there are packets, on which an answer may depend. (Of many
  // engines that are looked after in turn each would look every time.) Addresses that are being
  // resolved do not wait.
  void poll(Instant now, std::size_t received);
  // The next turn looks.
  void poll_next_turn() {
    due_ = Instant::min();
    turns_since_poll_ = kTurnsPerPoll;
  }
  // A NIC has come, or has other ports: its link may be down.
  void poll_soon() { due_ = Instant::min(); }
  // What the ports of that slot have to say is for nobody any more.
  void forget(std::size_t slot);

 private:
  // How long events wait at most, unless four turns take longer; in turns that bring packets, twice
  // as long.
  static constexpr Duration kRest = std::chrono::microseconds(100);
  static constexpr unsigned kTurnsPerPoll = 4;

  void handle_all(Instant now);
  void handle(Instant now, std::size_t slot, ChannelKind kind, const nic::PortEvent& event);
  void handle_resolution(Instant now, std::size_t slot, ChannelKind kind,
                         const nic::PortEvent& event);
  void handle_refusal(Instant now, ChannelKind kind, const nic::PortEvent& event);
  void handle_link_event(Instant now, std::size_t slot, nic::PortEvent::Kind kind);

  NicTable& nics_;
  ChannelPoller& poller_;
  Resolver& resolver_;
  UnknownPeerReplies& replies_;
  Liveness& liveness_;
  RailManager& rails_;
  NicExchange& exchange_;
  Handshake& handshake_;

  Instant due_{};
  unsigned turns_since_poll_ = kTurnsPerPoll;
  std::array<nic::PortEvent, 16> events_;
};

}  // namespace pullman::engine
