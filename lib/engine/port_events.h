// Polls the NICs for events other than packets: resolved addresses, links, refusals by hosts (ICMP
// port unreachable).
#pragma once

#include <array>
#include <chrono>

#include "engine/handshake/handshake.h"
#include "engine/nics/channel_poller.h"
#include "engine/session/liveness.h"
#include "engine/session/stateless_replies.h"

namespace pullman::engine {

class PortEvents {
 public:
  PortEvents(NicTable& nics, ChannelPoller& poller, Resolver& resolver, StatelessReplies& replies,
             Liveness& liveness, RailManager& rails, NicExchange& exchange, Handshake& handshake)
      : nics_(nics),
        poller_(poller),
        resolver_(resolver),
        replies_(replies),
        liveness_(liveness),
        rails_(rails),
        exchange_(exchange),
        handshake_(handshake) {}

  // Called once per turn, with the number of packets received in it. Polling costs one system call
  // per port, so events wait a little, and longer in turns with packets, which may need an answer.
  // The pause counts turns, too: of many engines that are served in rotation, each would otherwise
  // poll in every turn. While an address is being resolved every turn polls.
  void poll(Instant now, std::size_t received);
  // Makes the next turn poll.
  void poll_next_turn() {
    due_ = Instant::min();
    turns_since_poll_ = kTurnsPerPoll;
  }
  // Shortens the pause when a NIC was added or has new ports, since its link may be down.
  void poll_soon() { due_ = Instant::min(); }
  // Discards the events of that slot's ports, and gives back the destinations they resolved.
  void forget(std::size_t slot);

 private:
  // The longest time that an event waits, unless kTurnsPerPoll turns take longer. In turns with
  // packets it is twice as long.
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
  StatelessReplies& replies_;
  Liveness& liveness_;
  RailManager& rails_;
  NicExchange& exchange_;
  Handshake& handshake_;

  Instant due_{};
  unsigned turns_since_poll_ = kTurnsPerPoll;
  std::array<nic::PortEvent, 16> events_;
};

}  // namespace pullman::engine
