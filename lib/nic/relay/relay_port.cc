#include "nic/relay/relay_port.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace pullman::nic {

RelayPort::RelayPort(const Address& address, std::size_t packet_bytes) : address_(address) {
  limits_.packet_bytes = packet_bytes;
  limits_.receive_packets = kQueue;
  memory_.resize(2 * kQueue * packet_bytes);
  free_.reserve(2 * kQueue);
  for (std::uint32_t i = 0; i < 2 * kQueue; ++i) free_.push_back(i);
}

RelayPort::~RelayPort() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::size_t RelayPort::send(std::span<const Outgoing> batch) {
  std::size_t count = 0;
  for (const Outgoing& packet : batch) {
    PULLMAN_CHECK(packet.to < destinations_.size() &&
                  packet.head.size() + packet.payload.size() <= limits_.packet_bytes);
    if (sent_.size() == kQueue) break;
    const std::uint32_t buffer = free_.back();
    free_.pop_back();
    std::byte* const end = std::copy(packet.head.begin(), packet.head.end(), bytes_of(buffer));
    std::copy(packet.payload.begin(), packet.payload.end(), end);
    sent_.push_back({.to = destinations_[packet.to],
                     .buffer = buffer,
                     .length = packet.head.size() + packet.payload.size()});
    ++count;
  }
  counters_.sent += count;
  if (count < batch.size()) ++counters_.send_refused;
  return count;
}

bool RelayPort::arrive(std::span<const std::byte> packet) {
  if (packet.size() > limits_.packet_bytes) {
    ++counters_.receive_truncated;
    return false;
  }
  if (held_ == kQueue) return false;
  const std::uint32_t buffer = free_.back();
  free_.pop_back();
  ++held_;
  std::copy(packet.begin(), packet.end(), bytes_of(buffer));
  arrived_.push_back({.buffer = buffer, .length = packet.size()});
  return true;
}

std::size_t RelayPort::receive(std::span<Incoming> batch, std::size_t enough) {
  std::size_t count = 0;
  while (count < std::min(enough, batch.size()) && !arrived_.empty()) {
    const Arrived first = arrived_.front();
    arrived_.pop_front();
    batch[count++] = {.bytes = {bytes_of(first.buffer), first.length}, .buffer = first.buffer};
  }
  counters_.received += count;
  return count;
}

void RelayPort::give_back(std::span<const Incoming> batch) {
  for (const Incoming& packet : batch) free_.push_back(static_cast<std::uint32_t>(packet.buffer));
  held_ -= batch.size();
}

void RelayPort::resolve(const Address& address, std::uint64_t cookie) {
  PortEvent event;
  event.kind = PortEvent::Kind::kResolveFailed;
  event.cookie = cookie;
  if (is_relayed(address)) {
    if (unused_.empty()) {
      unused_.push_back(destinations_.size());
      destinations_.emplace_back();
    }
    event.kind = PortEvent::Kind::kResolved;
    event.to = unused_.back();
    unused_.pop_back();
    destinations_[event.to] = unrelayed(address);
  }
  events_.push_back(event);
}

void RelayPort::forget(Destination to) {
  unused_.push_back(to);
}

std::size_t RelayPort::poll_events(std::span<PortEvent> events) {
  std::size_t count = 0;
  while (count < events.size() && !events_.empty()) {
    events[count++] = events_.front();
    events_.pop_front();
  }
  return count;
}

int RelayPort::wait_fd() {
  if (descriptor_ < 0) descriptor_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return descriptor_;
}

}  // namespace pullman::nic
