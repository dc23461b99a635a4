#include "engine/port_events.h"

#include <bit>

#include "base/log.h"

namespace pullman::engine {

using Kind = nic::PortEvent::Kind;

void PortEvents::poll(Instant now, std::size_t received) {
  const bool busy = received != 0;
  ++turns_since_poll_;
  const bool due = turns_since_poll_ >= kTurnsPerPoll && now >= due_ + (busy ? kRest : Duration(0));
  if (resolver_.any_pending() || due) [[unlikely]] {
    turns_since_poll_ = 0;
    due_ = now + kRest;
    handle_all(now);
  } else {
    poller_.rest_until(busy ? Instant::min() : due_);
  }
}

void PortEvents::handle_all(Instant now) {
  for (std::uint32_t bits = nics_.all_channels(); bits != 0; bits &= bits - 1) {
    const auto place = static_cast<unsigned>(std::countr_zero(bits));
    std::size_t count = 0;
    do {
      Channel& channel = nics_.at(place);
      count = channel.port().poll_events(events_);
      for (std::size_t i = 0; i < count; ++i) {
        handle(now, place % NicTable::kRow, channel.kind(), events_[i]);
      }
    } while (count == events_.size());
  }
}

void PortEvents::handle(Instant now, std::size_t slot, ChannelKind kind,
                        const nic::PortEvent& event) {
  switch (event.kind) {
    case Kind::kResolved:
    case Kind::kResolveFailed:
      resolver_.note_answered(slot);
      if (event.cookie == Resolver::kStatelessReplyCookie) return replies_.handle_resolved(event);
      return handle_resolution(now, slot, kind, event);
    case Kind::kRefused:
      return handle_refusal(now, kind, event);
    case Kind::kLinkDown:
    case Kind::kAddressGone:
    case Kind::kLinkUp:
      // Both channels of a NIC report it: one report is enough.
      if (kind == ChannelKind::kCommand) handle_link_event(now, slot, event.kind);
      return;
    case Kind::kFailed:
      return handle_link_event(now, slot, event.kind);
  }
}

void PortEvents::handle_link_event(Instant now, std::size_t slot, Kind kind) {
  const bool up = kind == Kind::kLinkUp;
  // "Up" is never a repetition: an answer to one peer may have set the link to up while rails of
  // other peers are still down.
  if (!up && (nics_.links_down() >> slot & 1) != 0) return;
  nics_.set_link(slot, up);
  log().info("NIC {}: {}", nics_[slot].device().name,
             kind == Kind::kLinkDown      ? "link down"
             : kind == Kind::kAddressGone ? "its address is gone"
             : up                         ? "link up"
                                          : "failed");
  if (!up) handshake_.handle_link_down(slot);
  rails_.handle_link_event(now, slot, kind);
}

void PortEvents::handle_refusal(Instant now, ChannelKind kind, const nic::PortEvent& event) {
  const auto [peer, rail, is_answer] = resolver_.purpose_of(kind, event.cookie);
  if (peer == nullptr) return;
  peer->refused_at = now;
  if (rail != nullptr) liveness_.note_refusal(now, *rail, event);
}

void PortEvents::handle_resolution(Instant now, std::size_t slot, ChannelKind kind,
                                   const nic::PortEvent& event) {
  const bool resolved = event.kind == Kind::kResolved;
  const auto [peer, rail, is_answer] = resolver_.purpose_of(kind, event.cookie);
  if (is_answer) return handshake_.handle_answer_resolved(*peer, slot, event);
  nic::Port& port = nics_.channel(slot, kind).port();
  nic::Destination* to = rail == nullptr || rail->module != slot ? nullptr
                         : kind == ChannelKind::kCommand         ? &rail->command_to
                                                                 : &rail->data_to;
  if (to != nullptr && !Resolver::take_answer(*rail, kind)) {
    if (resolved) port.forget(event.to);
    return exchange_.aim(*rail);
  }
  if (to == nullptr || *to != nic::kInvalidDestination) {  // nobody waits for it any more
    if (resolved) port.forget(event.to);
    return;
  }
  if (resolved) *to = event.to;
  const bool left = peer->rails != nullptr && !usable(*rail);
  if (rail->number != 0 || left) return rails_.handle_resolution(now, *rail, resolved);
  if (!resolved) return handshake_.handle_no_way(*peer);
  handshake_.handle_home_resolved(now, *peer);
}

void PortEvents::forget(std::size_t slot) {
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    nic::Port& port = nics_.channel(slot, kind).port();
    std::size_t count = 0;
    do {
      count = port.poll_events(events_);
      for (std::size_t i = 0; i < count; ++i) {
        if (events_[i].kind == Kind::kResolved) port.forget(events_[i].to);
      }
    } while (count == events_.size());
  }
}

}  // namespace pullman::engine
