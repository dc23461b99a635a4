#include "nic/udp/udp_port.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace pullman::nic::udp {
namespace {

std::size_t packet_bytes_of(const Device& device, const PortOptions& options) {
  if (options.packet_bytes > device.packet_bytes) {
    throw NicError(fmt::format("{} carries packets of {} bytes at most, not {}", device.name,
                               device.packet_bytes, options.packet_bytes));
  }
  return options.packet_bytes != 0 ? options.packet_bytes : device.packet_bytes;
}

Offloads offloads_for(const Socket& socket, const PortOptions& options) {
  return options.offloads ? offloads_of(socket) : Offloads{};
}

}  // namespace

UdpPort::UdpPort(const Device& device, const PortOptions& options)
    : socket_(open_socket(with_port(device.address, options.port), device.name)),
      offloads_(offloads_for(socket_, options)),
      address_(address_of(socket_)),
      limits_{.packet_bytes = packet_bytes_of(device, options)},
      peers_(address_),
      sender_(socket_.fd(), peers_, offloads_.segment),
      receiver_(socket_.fd(), peers_, limits_.packet_bytes, offloads_.coalesce) {
  size_buffers(options);
  if (options.busy_poll_us != 0) set_busy_poll(socket_, options.busy_poll_us);
}

void UdpPort::size_buffers(const PortOptions& options) {
  const std::size_t charged = charged_bytes(address_, limits_.packet_bytes);
  room_ = make_receive_room(socket_, charged, options.receive_buffer_bytes);
  limits_.receive_packets = room_.packets;
  grow_send_buffer(socket_, options.send_packets * charged);
}

std::size_t UdpPort::poll_events(std::span<PortEvent> events) {
  const bool fails = (sender_.broken() || receiver_.broken()) && !failed_;
  if (fails && !events.empty()) {
    failed_ = true;
    events.front() = {.kind = PortEvent::Kind::kFailed};
    return 1 + peers_.take_events(events.subspan(1));
  }
  return peers_.take_events(events);
}

const PortCounters& UdpPort::counters() const {
  counters_.receive_overflows = datagrams_dropped(socket_);
  return counters_;
}

std::size_t UdpPort::path_bytes(Destination to) const {
  const std::size_t known = peers_.path_bytes(to);
  return known == 0 ? limits_.packet_bytes : std::min(known, limits_.packet_bytes);
}

}  // namespace pullman::nic::udp
