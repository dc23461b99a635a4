#include "relay/relay.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "relay/forwarding.h"

namespace pullman::relay {

Relay::Relay(std::vector<Route> routes, const Config& config, const nic::Address& own)
    : routes_(std::move(routes)),
      own_(own),
      patience_(std::clamp<Duration>(config.peer_timeout / 16, std::chrono::milliseconds(5),
                                     std::chrono::seconds(1))) {
  for (const Route& route : routes_) hops_.push_back({.via = route.via, .peer = {}});
  done_.reserve(kMaxSent);
  unused_.reserve(kMaxSent);
  arrived_.reserve(kArrivals);
  taken_.reserve(kArrivals);
  unposted_.reserve(kArrivals);
  for (std::size_t i = 0; i < kArrivals; ++i) {
    Arrival& arrival = arrivals_.emplace_back();
    arrival.bytes.resize(wire::kMaxRelayBytes + kLongestPacket);
    arrival.arrived = &arrived_;
    arrival.request.user = &arrival;
    arrival.request.on_done = [](Request& request) {
      auto* const done = static_cast<Arrival*>(request.user);
      done->arrived->push_back(done);
    };
  }
}

engine::NicPorts Relay::open(const engine::NicPorts& beside) {
  const nic::Address address = nic::relayed(own_);
  const std::size_t of_nic = beside.data->limits().packet_bytes;
  const std::size_t least = beside.command->limits().packet_bytes;
  const std::size_t longest =
      std::clamp(of_nic - std::min(kRoom, of_nic), std::min(least, kLongestPacket), kLongestPacket);
  auto command = std::make_unique<nic::RelayPort>(address, std::min(least, kLongestPacket));
  auto data = std::make_unique<nic::RelayPort>(address, longest);
  command_ = command.get();
  data_ = data.get();
  engine::NicPorts ports{.device = {}, .command = std::move(command), .data = std::move(data)};
  ports.device.driver = "relay";
  ports.device.name = "relay";
  ports.device.address = nic::with_port(address, 0);
  ports.device.packet_bytes = longest;
  ports.device.stream = true;  // a last resort
  ports.device.relayed = true;
  ports.device.nature = "through other processes";
  return ports;
}

void Relay::attach(Instant now, engine::Engine& engine) {
  engine_ = &engine;
  for (Arrival& arrival : arrivals_) post(now, arrival);
}

void Relay::post(Instant now, Arrival& arrival) {
  const std::span<std::byte> whole[] = {arrival.bytes};
  const engine::ReceiveOp any{.source = kAnyPeer,
                              .tag = 0,
                              .ignore = ~Tag{0},
                              .segments = whole,
                              .options = {.space = kSpace}};
  closed_ = engine_->matching().submit(now, any, arrival.request) == Status::kClosed;
}

std::size_t Relay::progress(Instant now) noexcept {
  try {
    turned_ = now;
    step(now);
    if (!command_->has_arrived() && !data_->has_arrived()) return 0;
    engine_->prepare_to_block();  // so that it looks at our ports
    const std::size_t received = engine_->progress(now);
    step(now);
    return received;
  } catch (const std::bad_alloc&) {
    return 0;  // packets are lost, and sent again
  }
}

void Relay::step(Instant now) {
  if (now >= tend_due_) tend_hops(now);
  collect_sent(now);
  if (!arrived_.empty() || !unposted_.empty()) take_arrived(now);
  send_own(now);
}

Instant Relay::next_due() const {
  if (!arrived_.empty() || command_->has_sent() || data_->has_sent()) return Instant::min();
  const Instant soon =
      command_->has_arrived() || data_->has_arrived() ? turned_ + kSoon : Instant::max();
  return std::min(soon, tend_due_);
}

// --- neighbours

// All hops are connected to from the start, so that they know us, too. A peer that is gone is left
// as it is, since the program may have its handle, and is replaced when its place is needed.
void Relay::tend_hops(Instant now) {
  tend_due_ = hops_.empty() ? Instant::max() : now + kPause;
  for (Hop& hop : hops_) {
    if (engine_->neighbours().is_own(hop.via)) continue;
    hop.connected = connect(now, hop.via, hop.peer);
  }
}

bool Relay::connect(Instant now, const nic::Address& address, PeerId& peer) {
  const auto connected = engine_->connect(now, address);
  if (connected.status != Status::kOk) return false;
  peer = connected.peer;
  return true;
}

// Returns the process at that address, if it is on a link of ours: it is called when something is
// for it. No more often than once in a while, since any peer may name any address.
std::optional<PeerId> Relay::on_same_link(Instant now, const nic::Address& to) {
  const auto found = called_.find(to);
  if (found != called_.end()) {
    Called& known = found->second;
    if (known.connected && engine_->neighbours().is_neighbour(known.peer)) return known.peer;
    if (now < known.due) return std::nullopt;
  } else if (called_.size() == kMaxCalled) {
    std::erase_if(called_, [&](const auto& one) { return one.second.due <= now; });
    if (called_.size() == kMaxCalled) return std::nullopt;
  }
  Called call{.peer = {}, .connected = false, .due = now + kPause};
  if (engine_->neighbours().reach(to) >= nic::Reach::kDirect) {
    call.connected = connect(now, to, call.peer);
  }
  called_[to] = call;
  return call.connected ? std::optional(call.peer) : std::nullopt;
}

bool Relay::stalled(Instant now, PeerId neighbour) const {
  const auto share = shares_.find(key_of(neighbour));
  return share != shares_.end() && share->second.stalled(now, patience_);
}

// --- routes

const Route* Relay::route_for(const nic::Address& to) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(), [&](const Route& route) {
    return route.to && nic::contains(*route.to, to);
  });
  return found == routes_.end() ? nullptr : &*found;
}

// Returns the next hop: the process itself if it is a neighbour, else that of a route for it, else
// where its packets come from, else the process itself if it can be called, else the default. Of
// several the first that takes what it is sent. A packet does not go back to where it came from,
// and what is our own not straight to its receiver: a rail that is no other way is none.
std::optional<PeerId> Relay::hop_for(Instant now, const nic::Address& to, PeerId from) {
  std::optional<PeerId> slow;
  const auto serves = [&](PeerId hop) {
    if (hop == from || !engine_->neighbours().is_neighbour(hop)) return false;
    if (from == kAnyPeer && engine_->neighbours().is_at(hop, to)) return false;
    if (!stalled(now, hop)) return true;
    if (!slow) slow = hop;
    return false;
  };
  if (const auto itself = engine_->neighbours().neighbour_at(to); itself && serves(*itself)) {
    return itself;
  }
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const bool covers = routes_[i].to && nic::contains(*routes_[i].to, to);
    if (covers && hops_[i].connected && serves(hops_[i].peer)) return hops_[i].peer;
  }
  if (const auto known = learned_.find(to); known && serves(*known)) return known;
  if (const auto called = on_same_link(now, to); called && serves(*called)) return called;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    if (!routes_[i].to && hops_[i].connected && serves(hops_[i].peer)) return hops_[i].peer;
  }
  return slow;
}

std::optional<nic::Address> Relay::address_to_call(const nic::Address& address) const {
  if (nic::is_relayed(address)) return address;
  const engine::Neighbours& neighbours = engine_->neighbours();
  const nic::Reach reach = neighbours.reach(address);
  const auto is_hop = [&](const Hop& hop) { return hop.via == address; };
  if (reach >= nic::Reach::kDirect || std::any_of(hops_.begin(), hops_.end(), is_hop)) {
    return address;
  }
  const nic::Address behind = nic::relayed(address);
  if (route_for(address) != nullptr) return behind;
  if (reach != nic::Reach::kNone || !nic::is_relayed(behind)) return address;
  const bool any = has_default() || learned_.find(address) || neighbours.neighbour_at(address);
  return any ? std::optional(behind) : std::nullopt;
}

std::string Relay::next_hop(const nic::Address& relayed) const {
  const nic::Address to = nic::unrelayed(relayed);
  const engine::Neighbours& neighbours = engine_->neighbours();
  if (neighbours.neighbour_at(to)) return nic::to_string(to);
  for (const bool defaults : {false, true}) {
    for (std::size_t i = 0; i < routes_.size(); ++i) {
      const bool covers = routes_[i].to ? nic::contains(*routes_[i].to, to) : defaults;
      if (covers && hops_[i].connected && neighbours.is_neighbour(hops_[i].peer)) {
        return nic::to_string(hops_[i].via);
      }
    }
    const auto known = learned_.find(to);
    if (known && neighbours.is_neighbour(*known)) {
      return nic::to_string(neighbours.address_of(*known));
    }
  }
  return {};
}

// --- packets

// A receive for which there is no memory is posted again in a later step. One that ends with its
// peer in the middle of a message may say kClosed, too, while the engine goes on.
void Relay::take_arrived(Instant now) {
  taken_.swap(arrived_);
  for (Arrival* const arrival : taken_) {
    const Request& request = arrival->request;
    if (request.status() == Status::kOk) {
      handle(now, request.source(), std::span(arrival->bytes).first(request.length()));
    } else if (request.status() == Status::kTruncated) {
      ++stats().relay_dropped_malformed;
    }
    unposted_.push_back(arrival);
  }
  taken_.clear();
  for (; !closed_ && !unposted_.empty(); unposted_.pop_back()) post(now, *unposted_.back());
}

void Relay::handle(Instant now, PeerId from, std::span<const std::byte> bytes) noexcept try {
  const auto head = wire::take_relay(bytes);
  if (!head || bytes.size() > kLongestPacket) {
    ++stats().relay_dropped_malformed;
    return;
  }
  const wire::RelayId self = engine_->neighbours().id();
  const Step step = step_for(*head, self, engine_->neighbours().is_own(head->to));
  if (step == Step::kLoop) {
    ++stats().relay_dropped_loop;
    return;
  }
  learned_.note(head->from, from);
  if (step == Step::kTooFar) {
    ++stats().relay_dropped_too_far;
  } else if (step == Step::kHere) {
    ++(port(head->for_data).arrive(bytes) ? stats().relay_received : stats().relay_dropped_full);
  } else if (const auto hop = hop_for(now, head->to, from)) {
    if (pass(now, *hop, passed_on(*head, self), bytes)) ++stats().relay_forwarded;
  } else {
    ++stats().relay_dropped_no_way;
  }
} catch (const std::bad_alloc&) {
  ++stats().relay_dropped_full;
}

void Relay::send_own(Instant now) {
  for (const bool for_data : {false, true}) {
    while (port(for_data).has_sent()) {
      port(for_data).take([&](const nic::Address& to, std::span<const std::byte> packet) {
        const auto hop = hop_for(now, to, kAnyPeer);
        if (!hop) {
          // Of a neighbour there need be no other way: its relayed rail is down.
          if (!engine_->neighbours().neighbour_at(to)) ++stats().relay_dropped_no_way;
          return;
        }
        wire::RelayHead head;
        head.for_data = for_data;
        head.to = to;
        head.from = own_;
        head.passed_count = 1;
        head.passed[0] = engine_->neighbours().id();
        if (pass(now, *hop, head, packet)) ++stats().relay_sent;
      });
    }
  }
}

Relay::Sent* Relay::free_slot() {
  if (unused_.empty() && sent_.size() < kMaxSent) {
    Sent& sent = sent_.emplace_back();
    sent.done = &done_;
    sent.request.user = &sent;
    sent.request.on_done = [](Request& request) {
      auto* const done = static_cast<Sent*>(request.user);
      done->done->push_back(done);
    };
    return &sent;
  }
  if (unused_.empty()) return nullptr;
  Sent* const sent = unused_.back();
  unused_.pop_back();
  return sent;
}

// Sends a message that is done when the neighbour has it, so what is under way is known. Returns
// false if it was dropped for lack of room.
bool Relay::pass(Instant now, PeerId to, const wire::RelayHead& head,
                 std::span<const std::byte> packet) {
  const auto share = shares_.find(key_of(to));
  const bool admitted = share == shares_.end() || share->second.admits(head.from);
  Sent* const sent = admitted ? free_slot() : nullptr;
  if (sent == nullptr) {
    ++stats().relay_dropped_full;
    return false;
  }
  sent->to = to;
  sent->origin = head.from;
  bool begun = false;
  try {
    sent->bytes.resize(wire::relay_bytes(head) + packet.size());
    std::copy(packet.begin(), packet.end(), wire::put_relay(sent->bytes.data(), head));
    shares_[key_of(to)].begin(now, head.from);
    begun = true;
    const std::span<const std::byte> whole[] = {sent->bytes};
    SendOptions options;
    options.space = kSpace;
    options.until_delivered = true;
    engine_->sending().submit(now, {.peer = to, .tag = 0, .segments = whole, .options = options},
                              sent->request);
  } catch (const std::bad_alloc&) {
    begun ? end_share(now, *sent) : unused_.push_back(sent);
    throw;
  }
  return true;
}

void Relay::collect_sent(Instant now) {
  for (Sent* const sent : done_) end_share(now, *sent);
  done_.clear();
}

// Its message is no longer under way.
void Relay::end_share(Instant now, Sent& sent) {
  const auto share = shares_.find(key_of(sent.to));
  share->second.end(now, sent.origin);
  if (share->second.under_way() == 0) shares_.erase(share);
  unused_.push_back(&sent);
}

}  // namespace pullman::relay
