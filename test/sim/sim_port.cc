#include "sim/sim_port.h"

#include <fmt/format.h>

#include <algorithm>

namespace pullman::sim {
namespace {

constexpr nic::Destination kFirstDestination = 1000;  // no index into anything else
constexpr std::uint16_t kFirstPort = 7100;

constexpr std::size_t generation_at(std::uint8_t kind) {
  return kind == 4 ? 1 : 6;
}
std::uint8_t generation_of(const nic::Address& address) {
  return std::to_integer<std::uint8_t>(address.bytes[generation_at(address.kind)]);
}

}  // namespace

nic::Address address_of(Endpoint at, std::uint8_t kind, std::uint8_t generation) {
  nic::Address address;
  address.kind = kind;
  const std::uint16_t port = static_cast<std::uint16_t>(kFirstPort + static_cast<int>(at.channel));
  const auto host = static_cast<std::byte>(at.host + 1);
  const auto subnet = static_cast<std::byte>(at.nic);
  const auto put = [&](std::size_t i, unsigned value) {
    address.bytes[i] = static_cast<std::byte>(value);
  };
  if (kind == 4) {
    address.length = 6;
    put(0, 10);
    address.bytes[2] = subnet;
    address.bytes[3] = host;
  } else {
    address.length = kind == 6 ? 22 : wire::kMaxAddressBytes;
    put(0, 0xFD);
    address.bytes[7] = subnet;
    address.bytes[15] = host;
  }
  put(generation_at(kind), generation);
  const std::size_t port_at = kind == 4 ? 4 : 16;
  put(port_at, port >> 8);
  put(port_at + 1, port & 0xFF);
  return address;
}

std::optional<Endpoint> endpoint_of(const nic::Address& address, std::size_t hosts) {
  const std::size_t subnet_at = address.kind == 4 ? 2 : 7;
  const std::size_t host_at = address.kind == 4 ? 3 : 15;
  const auto nic = static_cast<std::uint8_t>(address.bytes[subnet_at]);
  const auto host = static_cast<std::uint8_t>(static_cast<unsigned>(address.bytes[host_at]) - 1);
  if (nic >= kMaxNics || host >= hosts) return std::nullopt;
  for (const Channel channel : {Channel::kCommand, Channel::kData}) {
    const Endpoint at{host, channel, nic};
    if (address_of(at, address.kind, generation_of(address)) == address) return at;
  }
  return std::nullopt;
}

SimPort::SimPort(Network& network, Endpoint at, const PortPlan& plan)
    : network_(network),
      at_(at),
      plan_(plan),
      address_(address_of(at, plan.address_kind, network.generation(at))) {
  limits_.packet_bytes = plan.packet_bytes;
  limits_.receive_packets = plan.receive_packets;
  limits_.burst_bytes = plan.bursts ? 65507 : 0;
  network_.attach(at_, *this);
}

SimPort::~SimPort() {
  if (!lent_.empty()) {
    network_.findings().report(
        fmt::format("a port was closed while {} of its buffers were lent", lent_.size()));
  }
  for (const Datagrams::Slot slot : arrived_) network_.datagrams().release(slot);
  for (const Datagrams::Slot slot : lent_) network_.datagrams().release(slot);
  network_.detach(at_, *this);
}

std::size_t SimPort::send(std::span<const nic::Outgoing> batch) {
  std::size_t taken = 0;
  for (const nic::Outgoing& packet : batch) {
    if (!take(packet)) {
      ++counters_.send_refused;
      break;
    }
    ++taken;
  }
  counters_.sent += taken;
  return taken;
}

bool SimPort::take(const nic::Outgoing& packet) {
  drain_queue();
  if (leaving_.size() >= plan_.send_queue) return false;
  if (network_.troubled(at_, NicTrouble::Kind::kStuck)) return false;
  const std::size_t bytes = packet.head.size() + packet.payload.size();
  if (bytes > limits_.packet_bytes || bytes == 0) {
    network_.findings().report(
        fmt::format("sent {} bytes on a port of {}", bytes, limits_.packet_bytes));
  }
  const std::optional<Endpoint> to = place_of(packet.to);
  if (!to) {
    network_.findings().report(fmt::format("sent to destination {} unresolved", packet.to));
    return true;
  }
  // The address is no longer in use.
  if (destinations_[packet.to - kFirstDestination].generation != network_.generation(*to)) {
    network_.count_rejected();
    return true;
  }
  if (network_.chance(plan_.send_error)) {
    ++counters_.send_errors;
    network_.count_rejected();
    return true;
  }
  if (network_.troubled(at_, NicTrouble::Kind::kLiar)) ++counters_.send_errors;
  if (plan_.send_ns_per_kib != 0) {
    const Instant from = leaving_.empty() ? network_.now() : leaving_.back();
    leaving_.push_back(
        from + Duration(static_cast<Duration::rep>(1 + bytes * plan_.send_ns_per_kib / 1024)));
  }
  network_.transmit(at_, *to, packet.head, packet.payload);
  return true;
}

void SimPort::drain_queue() {
  while (!leaving_.empty() && leaving_.front() <= network_.now()) leaving_.pop_front();
}

Instant SimPort::room_at() const {
  return leaving_.size() < plan_.send_queue ? kNever : leaving_.front();
}

std::optional<Endpoint> SimPort::place_of(nic::Destination to) const {
  const nic::Destination index = to - kFirstDestination;
  return index < destinations_.size() ? destinations_[index].place : std::nullopt;
}

std::size_t SimPort::path_bytes(nic::Destination to) const {
  const std::optional<Endpoint> place = place_of(to);
  const std::size_t told = place ? network_.told(at_.host, place->host) : 0;
  return told == 0 ? limits_.packet_bytes : std::min(told, limits_.packet_bytes);
}

nic::Reach SimPort::reach(const nic::Address& address) const {
  ++questions_;
  const std::optional<Endpoint> to = endpoint_of(address, network_.hosts());
  const nic::Reach reach = to ? network_.reach(at_, *to) : nic::Reach::kNone;
  const bool own = reach != nic::Reach::kNone && to->host == at_.host;
  return own ? nic::Reach::kOwn : reach;
}

bool SimPort::is_own(const nic::Address& address) const {
  const std::optional<Endpoint> to = endpoint_of(address, network_.hosts());
  return to && to->host == at_.host;
}

std::size_t SimPort::receive(std::span<nic::Incoming> batch, std::size_t enough) {
  std::size_t count = 0;
  if (network_.overlooks(at_)) return 0;
  while (count < enough && !arrived_.empty()) {
    const Datagrams::Slot slot = arrived_.front();
    arrived_.pop_front();
    lent_.push_back(slot);
    batch[count++] = {.bytes = network_.datagrams().bytes(slot), .buffer = slot};
  }
  counters_.received += count;
  return count;
}

void SimPort::give_back(std::span<const nic::Incoming> batch) {
  for (const nic::Incoming& incoming : batch) {
    const auto slot = static_cast<Datagrams::Slot>(incoming.buffer);
    const auto lent = std::find(lent_.begin(), lent_.end(), slot);
    if (lent == lent_.end()) {
      network_.findings().report("a buffer was given back that was not lent");
      return;
    }
    lent_.erase(lent);
    network_.datagrams().release(slot);
  }
}

void SimPort::resolve(const nic::Address& address, std::uint64_t cookie) {
  Resolution resolution{.due = network_.now() + plan_.resolve_delay,
                        .event = {.kind = nic::PortEvent::Kind::kResolveFailed,
                                  .cookie = cookie,
                                  .to = nic::kInvalidDestination}};
  const std::optional<Endpoint> to = endpoint_of(address, network_.hosts());
  if (to && !network_.chance(plan_.resolve_failure)) {
    resolution.event.kind = nic::PortEvent::Kind::kResolved;
    resolution.event.to = kFirstDestination + destinations_.size();
    destinations_.push_back({to, cookie, generation_of(address)});
  }
  resolutions_.push_back(resolution);
  network_.wake_at(resolution.due, at_);
}

void SimPort::forget(nic::Destination to) {
  if (!place_of(to)) {
    network_.findings().report(fmt::format("forgot destination {}, unresolved", to));
    return;
  }
  destinations_[to - kFirstDestination].place.reset();
}

std::size_t SimPort::poll_events(std::span<nic::PortEvent> events) {
  std::size_t count = 0;
  while (count < events.size() && !resolutions_.empty() &&
         resolutions_.front().due <= network_.now()) {
    events[count++] = resolutions_.front().event;
    resolutions_.pop_front();
  }
  while (count < events.size() && !refusals_.empty()) {
    events[count++] = refusals_.front();
    refusals_.pop_front();
  }
  if (count < events.size() && link_changed()) {
    link_up_ = !link_up_;
    using Kind = nic::PortEvent::Kind;
    events[count++].kind = link_up_ ? Kind::kLinkUp : Kind::kLinkDown;
  }
  return count;
}

bool SimPort::arrive(Datagrams::Slot slot) {
  if (network_.datagrams().bytes(slot).size() > limits_.packet_bytes) {
    ++counters_.receive_truncated;
    return false;
  }
  if (arrived_.size() + lent_.size() >= plan_.receive_packets) return false;
  arrived_.push_back(slot);
  return true;
}

void SimPort::refuse(Endpoint at, std::span<const std::byte, nic::PortEvent::kMaxQuoted> quoted) {
  for (std::size_t i = 0; i < destinations_.size(); ++i) {
    if (destinations_[i].place != at) continue;
    refusals_.push_back({.kind = nic::PortEvent::Kind::kRefused,
                         .cookie = destinations_[i].cookie,
                         .to = kFirstDestination + i});
    std::copy(quoted.begin(), quoted.end(), refusals_.back().quoted.begin());
  }
}

bool SimPort::has_work() const {
  return !arrived_.empty() || !refusals_.empty() || link_changed() ||
         (!resolutions_.empty() && resolutions_.front().due <= network_.now());
}

}  // namespace pullman::sim
