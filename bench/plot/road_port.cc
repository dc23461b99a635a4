#include "plot/road_port.h"

#include <algorithm>

namespace pullman::lab {
namespace {

// As over Ethernet, MTU 1500.
constexpr std::size_t kCommandBytes = 816;
constexpr std::size_t kDataBytes = 1472;

}  // namespace

// 10.0.x.y with the host's number in the last two bytes; port 1 or 2.
nic::Address address_of(std::uint32_t place) {
  nic::Address address;
  address.kind = 4;
  address.length = 6;
  address.bytes[0] = std::byte{10};
  address.bytes[2] = static_cast<std::byte>(place / 2 >> 8);
  address.bytes[3] = static_cast<std::byte>(place / 2);
  address.bytes[5] = static_cast<std::byte>(1 + place % 2);
  return address;
}

RoadPort::RoadPort(Road& road, std::uint32_t place, const RoadPlan& plan)
    : road_(road), place_(place), address_(address_of(place)) {
  limits_ = {.packet_bytes = place % 2 == 0 ? kCommandBytes : kDataBytes,
             .receive_packets = plan.socket_packets,
             .packets_per_turn = plan.packets_per_turn};
}

bool RoadPort::arrive(Datagram datagram) {
  if (unread_.size() + lent_.size() >= limits_.receive_packets) return false;
  unread_.push_back(std::move(datagram));
  return true;
}

std::size_t RoadPort::send(std::span<const nic::Outgoing> batch) {
  std::size_t taken = 0;
  while (taken < batch.size() && road_.send(place_, batch[taken])) ++taken;
  if (taken < batch.size()) ++counters_.send_refused;
  counters_.sent += taken;
  return taken;
}

std::size_t RoadPort::receive(std::span<nic::Incoming> batch, std::size_t enough) {
  std::size_t count = 0;
  for (; count < enough && !unread_.empty(); ++count) {
    lent_.push_back(std::move(unread_.front()));
    unread_.pop_front();
    batch[count] = {.bytes = {lent_.back().bytes.get(), lent_.back().length}, .buffer = 0};
  }
  counters_.received += count;
  road_.spend(place_ / 2, count);
  return count;
}

void RoadPort::give_back(std::span<const nic::Incoming> batch) {
  lent_.erase(lent_.begin(), lent_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
}

void RoadPort::resolve(const nic::Address& address, std::uint64_t cookie) {
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(address.bytes[i]); };
  const std::uint32_t place = 2 * (byte(2) << 8 | byte(3)) + byte(5) - 1;
  resolved_.push_back({.kind = nic::PortEvent::Kind::kResolved, .cookie = cookie, .to = place});
}

std::size_t RoadPort::poll_events(std::span<nic::PortEvent> events) {
  const std::size_t count = std::min(events.size(), resolved_.size());
  const auto end = resolved_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(resolved_.begin(), end, events.begin());
  resolved_.erase(resolved_.begin(), end);
  return count;
}

}  // namespace pullman::lab
