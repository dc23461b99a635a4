#include "nic/udp/udp_port.h"

#include <algorithm>
#include <utility>

#include "nic/devices.h"

namespace pullman::nic::udp {
namespace {

Offloads offloads_for(const Socket& socket, const PortOptions& options) {
  return options.offloads ? offloads_of(socket) : Offloads{};
}

}  // namespace

UdpPort::Line::Line(Socket opened, UdpPort& port, std::uint64_t names)
    : socket(std::move(opened)),
      receiver(socket.fd(), port.peers_, port.limits_.packet_bytes, port.offloads_.coalesce,
               names) {}

std::size_t UdpPort::receive_from(Line& line, std::span<Incoming> batch, std::size_t enough) {
  const std::size_t got = line.receiver.receive(batch, enough, counters_);
  if (got != 0) [[likely]] {
    line.fruitless = 0;
    line.heard = receives_;
  } else if (!line.quiet() && ++line.fruitless == kQuiet) {
    look_due_ = std::min(look_due_, receives_ + kRest);  // see rest()
  }
  return got;
}

UdpPort::UdpPort(const Device& device, const PortOptions& options)
    : UdpPort(open_socket(with_port(device.address, options.port), device.name), device, options) {}

UdpPort::UdpPort(Socket socket, const Device& device, const PortOptions& options)
    : options_(options),
      offloads_(offloads_for(socket, options)),
      limits_{.packet_bytes = packet_bytes_of(device, options),
              .burst_bytes = offloads_.segment ? Sender::kMostBytes : 0},
      address_(address_of(socket)),
      peers_(address_),
      charged_(charged_bytes(address_, limits_.packet_bytes)),
      main_(std::move(socket), *this, 0),
      room_(prepare(main_.socket)),
      sender_(main_.socket.fd(), peers_, offloads_.segment),
      interface_(device, address_, options.link_events) {
  limits_.receive_packets = room_.packets;
}

// Sizes the socket's buffers and sets what else the caller chose.
ReceiveRoom UdpPort::prepare(const Socket& socket) {
  grow_send_buffer(socket, options_.send_packets * charged_);
  if (options_.busy_poll_us != 0) set_busy_poll(socket, options_.busy_poll_us);
  return make_receive_room(socket, charged_, options_.receive_buffer_bytes);
}

void UdpPort::favour(Destination to) {
  favourite_.choose(to);
  sender_.go_directly(kNowhere, -1);
  if (direct_ != nullptr) {
    if (move_ == Move::kNone) begin(Move::kEmptiesDirect);
  } else if (open_direct()) {
    connect_direct();
  }
}

bool UdpPort::open_direct() {
  if (alone_) return false;
  Socket second = open_beside(main_.socket);
  alone_ = second.fd() < 0 || (watched_ && !wait_set_->add(second.fd()));
  if (alone_) return false;
  prepare(second);
  direct_ = std::make_unique<Line>(std::move(second), *this, kDirectNames);
  return true;
}

void UdpPort::connect_direct() {
  const Destination to = favourite_.chosen();
  move_ = Move::kNone;
  if (to == kNowhere) return;  // forgotten since
  if (!connect_to(direct_->socket, peers_.name_of(to), peers_.name_bytes()))
    return favourite_.choose(kNowhere);  // no way there just now: tried again if it stays worth it
  sender_.go_directly(to, direct_->socket.fd());
  begin(Move::kEmptiesMain);
}

void UdpPort::begin(Move move) {
  move_ = move;
  move_left_ = kLongestMove;
}

// The line has brought so many packets, and this step of the move is over.
bool UdpPort::done_with(Line& line, std::size_t got) {
  move_left_ -= std::min(got, move_left_);
  return line.receiver.emptied() || move_left_ == 0;
}

std::size_t UdpPort::receive_both(std::span<Incoming> batch, std::size_t enough) {
  if (move_ != Move::kNone) [[unlikely]]
    return receive_in_order(batch, enough);
  if (++receives_ >= look_due_) return look_everywhere(batch, enough);
  std::size_t count = 0;
  if (!direct_->quiet() || main_.quiet()) count = receive_from(*direct_, batch, enough);
  if (count < enough && !main_.quiet()) [[unlikely]] {
    count += receive_from(main_, batch.subspan(count), enough - count);
  }
  return count;
}

// What the favourite sends may be enough each time, and leave nothing for the others.
std::size_t UdpPort::look_everywhere(std::span<Incoming> batch, std::size_t enough) {
  look_due_ = receives_ + rest();
  std::size_t count = receive_from(main_, batch, enough);
  if (count < enough) count += receive_from(*direct_, batch.subspan(count), enough - count);
  return count;
}

// Where both are quiet the port itself may be asked seldom.
std::uint64_t UdpPort::rest() const {
  if (main_.quiet() == direct_->quiet()) return kRest;
  const std::uint64_t silence = receives_ - std::min(main_.heard, direct_->heard);
  return std::clamp(silence / kRestOfSilence, kRest, kLongestRest);
}

std::size_t UdpPort::receive_in_order(std::span<Incoming> batch, std::size_t enough) {
  std::size_t count = 0;
  if (move_ == Move::kEmptiesDirect) {
    count = receive_from(*direct_, batch, enough);
    if (done_with(*direct_, count)) connect_direct();
  }
  if (count >= enough) return count;
  const std::size_t more = receive_from(main_, batch.subspan(count), enough - count);
  count += more;
  if (move_ != Move::kEmptiesMain || !done_with(main_, more)) return count;
  // The favourite may have changed meanwhile, and changed back.
  begin(favourite_.chosen() == sender_.direct_to() ? Move::kNone : Move::kEmptiesDirect);
  if (count < enough) {
    count += receive_from(*direct_, batch.subspan(count), enough - count);
  }
  return count;
}

// Packets of one buffer lie side by side.
void UdpPort::give_back_several(std::span<const Incoming> batch) {
  for (std::size_t at = 0; at < batch.size();) {
    const std::uint64_t buffer = batch[at].buffer;
    std::size_t end = at + 1;
    while (end < batch.size() && batch[end].buffer == buffer) ++end;
    give_back(buffer, static_cast<std::uint32_t>(end - at));
    at = end;
  }
}

int UdpPort::wait_fd() {
  if (!wait_set_) {
    wait_set_.emplace();
    wait_set_->add(interface_.fd());
  }
  if (!watched_ && !watch()) return -1;
  return wait_set_->fd();
}

bool UdpPort::watch() {
  watched_ = wait_set_->add(main_.socket.fd()) &&
             (direct_ == nullptr || wait_set_->add(direct_->socket.fd()));
  if (!watched_) wait_set_->remove(main_.socket.fd());
  return watched_;
}

// A watched socket wakes its watchers with every packet: on this host that is 0.1 to 0.9 us of each
// of the peer's sends (docs/performance.md).
void UdpPort::unwatch() {
  if (!std::exchange(watched_, false)) return;
  wait_set_->remove(main_.socket.fd());
  if (direct_ != nullptr) wait_set_->remove(direct_->socket.fd());
}

void UdpPort::forget(Destination to) {
  peers_.forget(to);
  if (favourite_.chosen() != to) return;
  favourite_.choose(kNowhere);
  sender_.go_directly(kNowhere, -1);
}

std::size_t UdpPort::report_failure(std::span<PortEvent> events) {
  if (events.empty()) return 0;
  failed_ = true;
  events.front() = {.kind = PortEvent::Kind::kFailed};
  return 1 + peers_.take_events(events.subspan(1));
}

const PortCounters& UdpPort::counters() const {
  counters_.receive_overflows = datagrams_dropped(main_.socket);
  if (direct_ != nullptr) counters_.receive_overflows += datagrams_dropped(direct_->socket);
  return counters_;
}

std::size_t UdpPort::path_bytes(Destination to) const {
  const std::size_t known = peers_.path_bytes(to);
  return known == 0 ? limits_.packet_bytes : std::min(known, limits_.packet_bytes);
}

}  // namespace pullman::nic::udp
