#include "nic/udp/udp_port.h"

#include <fcntl.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "nic/devices.h"

namespace pullman::nic::udp {
namespace {

Offloads offloads_for(const Socket& socket, const PortOptions& options) {
  return options.offloads ? offloads_of(socket) : Offloads{};
}

// Packets to a loopback address come from anywhere on the host.
Tie tie_of(const Device& device) {
  return device.loopback ? Tie::kAddress : Tie::kDevice;
}

}  // namespace

UdpPort::Line::Line(Socket opened, UdpPort& port, std::uint64_t names)
    : socket(std::move(opened)),
      receiver(socket.fd(), port.peers_, port.limits_.packet_bytes, port.offloads_.coalesce,
               names) {}

std::size_t UdpPort::receive_from(Line& line, std::span<Incoming> batch, std::size_t enough) {
  const std::size_t got = line.receiver.receive(batch, enough, counters_);
  if (got != 0) [[likely]] {
    line.empty_receives = 0;
    line.heard = receives_;
  } else if (!line.quiet() && ++line.empty_receives == kQuiet) {
    line.due = receives_ + kRest;  // see rest()
    look_due_ = std::min(look_due_, line.due);
  }
  return got;
}

UdpPort::UdpPort(const Device& device, const PortOptions& options)
    : UdpPort(open_sockets(with_port(device.address, options.port), device.name, tie_of(device)),
              device, options) {}

UdpPort::UdpPort(Sockets sockets, const Device& device, const PortOptions& options)
    : options_(options),
      device_(device.name),
      offloads_(offloads_for(sockets.main, options)),
      limits_{.packet_bytes = packet_bytes_of(device, options),
              .burst_bytes = offloads_.segment ? Sender::kMaxBytes : 0,
              .packets_per_turn = offloads_.segment ? kBatchPackets : kBatchPackets / 2},
      report_(device),
      address_(bound_address(sockets.main, device.name)),
      peers_(address_),
      charged_(charged_bytes(address_, limits_.packet_bytes)),
      main_(std::move(sockets.main), *this, 0),
      room_(prepare(main_.socket)),
      sender_(main_.socket.fd(), peers_, offloads_.segment),
      interface_(device, address_, options.link_events) {
  limits_.receive_packets = room_.packets;
  limits_.receive_buffer = {.granted = room_.buffer_bytes, .wanted = room_.wanted_bytes};
  limits_.send_buffer = {.granted = send_buffer_of(main_.socket),
                         .wanted = options_.send_packets * charged_};
  line_[lines_++] = &main_;
  if (sockets.by_others.fd() >= 0) {
    receive_by_others(std::move(sockets.by_others));
  } else if (device_of(main_.socket) == 0 && shares_subnet(device, address_)) {
    send_by_device(main_.socket.fd(), device_);
  }
}

// Opens a socket beside the existing ones.
Socket UdpPort::open_another(Tie tie) const {
  std::array<const Socket*, std::tuple_size_v<decltype(line_)>> sockets{};
  std::transform(line_.begin(), line_.begin() + lines_, sockets.begin(),
                 [](const Line* line) { return &line->socket; });
  return open_beside(std::span(sockets).first(lines_), device_, tie);
}

void UdpPort::receive_by_others(Socket socket) {
  prepare(socket);
  sender_.go_by_others(socket.fd());
  by_others_ = std::make_unique<Line>(std::move(socket), *this, kByOthersNames);
  line_[lines_++] = by_others_.get();
}

// Sets the sizes of the socket's buffers and the caller's other options.
ReceiveRoom UdpPort::prepare(const Socket& socket) {
  grow_send_buffer(socket, options_.send_packets * charged_);
  if (options_.busy_poll_us != 0) set_busy_poll(socket, options_.busy_poll_us);
  return make_receive_room(socket, charged_, options_.receive_buffer_bytes);
}

void UdpPort::resolve(const Address& address, std::uint64_t cookie) {
  const Destination to = peers_.resolve(address, cookie);
  if (to == kInvalidDestination || by_others_ == nullptr) return;
  if (interface_.only_by_others(address)) peers_.set_by_others(to);
}

// A device that was removed and added again is another one to the kernel, and sockets stay bound to
// the old one. The new sockets get the descriptors of the old ones; the one of the connected peer
// is connected anew when packets for one peer follow each other again. If no new socket can be
// opened, because the device has no address yet, the next packet that finds no device calls this
// again: main_ is replaced last, and its device tells whether all is done.
void UdpPort::follow_device() {
  sender_.looked_for_device();
  const int now = static_cast<int>(if_nametoindex(device_.c_str()));
  const int before = device_of(main_.socket);
  if (now == 0 || before == 0 || now == before) return;
  sender_.go_directly(kInvalidDestination, -1);
  connected_peer_.choose(kInvalidDestination);
  for (Line* line : {direct_.get(), &main_}) {
    if (line == nullptr) continue;
    const Socket fresh = open_another(Tie::kDevice);
    if (fresh.fd() < 0) return;
    prepare(fresh);
    dup3(fresh.fd(), line->socket.fd(), O_CLOEXEC);
    if (watched_) wait_set_->add(line->socket.fd());
  }
}

void UdpPort::connect_to_peer(Destination to) {
  connected_peer_.choose(to);
  sender_.go_directly(kInvalidDestination, -1);
  if (peers_.by_others(to)) return;
  if (direct_ != nullptr) {
    if (move_ == Move::kNone) begin(Move::kEmptiesDirect);
  } else if (open_direct()) {
    connect_direct();
  }
}

bool UdpPort::open_direct() {
  if (alone_) return false;
  const Tie tie = device_of(main_.socket) == 0 ? Tie::kAddress : Tie::kDevice;
  Socket second = open_another(tie);
  alone_ = second.fd() < 0 || (watched_ && !wait_set_->add(second.fd()));
  if (alone_) return false;
  prepare(second);
  direct_ = std::make_unique<Line>(std::move(second), *this, kDirectNames);
  std::copy_backward(line_.begin(), line_.begin() + lines_, line_.begin() + lines_ + 1);
  line_.front() = direct_.get();
  ++lines_;
  return true;
}

void UdpPort::connect_direct() {
  const Destination to = connected_peer_.chosen();
  move_ = Move::kNone;
  if (to == kInvalidDestination) return;  // forgotten meanwhile
  if (!connect_to(direct_->socket, peers_.name_of(to), peers_.name_bytes()))
    return connected_peer_.choose(
        kInvalidDestination);  // no way there just now: tried again if it stays worth it
  sender_.go_directly(to, direct_->socket.fd());
  begin(Move::kEmptiesMain);
}

void UdpPort::begin(Move move) {
  move_ = move;
  move_left_ = kLongestMove;
}

// Returns whether this step of the move is over, now that the line has brought `got` packets.
bool UdpPort::done_with(Line& line, std::size_t got) {
  move_left_ -= std::min(got, move_left_);
  return line.receiver.emptied() || move_left_ == 0;
}

std::size_t UdpPort::receive_by_turns(std::span<Incoming> batch, std::size_t enough) {
  if (move_ != Move::kNone) [[unlikely]]
    return receive_in_order(batch, enough);
  if (++receives_ >= look_due_) return look_everywhere(batch, enough);
  std::size_t count = 0;
  for (std::size_t i = 0; i < lines_ && count < enough; ++i) {
    Line& line = *line_[i];
    if (line.quiet() && (i != 0 || !all_quiet())) continue;
    count += receive_from(line, batch.subspan(count), enough - count);
  }
  return count;
}

bool UdpPort::all_quiet() const {
  return std::all_of(line_.begin(), line_.begin() + lines_,
                     [](const Line* line) { return line->quiet(); });
}

// Polls the other lines first: the connected peer's packets may be enough each time, and leave no
// room for them.
std::size_t UdpPort::look_everywhere(std::span<Incoming> batch, std::size_t enough) {
  std::size_t count = 0;
  look_due_ = receives_ + kLongestRest;
  for (std::size_t i = lines_; i-- > 0;) {
    Line& line = *line_[i];
    const bool due = receives_ >= line.due;
    if (count < enough && (due || i == 0 || !line.quiet())) {
      count += receive_from(line, batch.subspan(count), enough - count);
    }
    if (due) line.due = receives_ + rest(line);
    look_due_ = std::min(look_due_, line.due);
  }
  return count;
}

// If all lines are quiet the port itself is polled seldom, so each of its receives may poll often.
std::uint64_t UdpPort::rest(const Line& line) const {
  if (!line.quiet() || all_quiet()) return kRest;
  return std::clamp((receives_ - line.heard) / kRestOfSilence, kRest, kLongestRest);
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
  // The connected peer may have changed meanwhile, and changed back.
  begin(connected_peer_.chosen() == sender_.direct_to() ? Move::kNone : Move::kEmptiesDirect);
  if (count < enough) {
    count += receive_from(*direct_, batch.subspan(count), enough - count);
  }
  return count;
}

// Packets of one buffer are adjacent in the batch.
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
    if (!wait_set_->add_if_any(interface_.fd())) {
      wait_set_.reset();
      return -1;
    }
  }
  if (!watched_ && !watch()) return -1;
  return wait_set_->fd();
}

bool UdpPort::watch() {
  watched_ = std::all_of(line_.begin(), line_.begin() + lines_,
                         [&](const Line* line) { return wait_set_->add(line->socket.fd()); });
  if (!watched_) unwatch_all();
  return watched_;
}

void UdpPort::unwatch_all() {
  for (std::size_t i = 0; i < lines_; ++i) wait_set_->remove(line_[i]->socket.fd());
}

// A watched socket wakes its watchers with every packet, which on this host costs each of the
// peer's sends 0.1 to 0.9 us (decision 0019).
void UdpPort::unwatch() {
  if (!std::exchange(watched_, false)) return;
  unwatch_all();
}

void UdpPort::forget(Destination to) {
  peers_.forget(to);
  if (connected_peer_.chosen() != to) return;
  connected_peer_.choose(kInvalidDestination);
  sender_.go_directly(kInvalidDestination, -1);
}

std::size_t UdpPort::report_failure(std::span<PortEvent> events) {
  if (events.empty()) return 0;
  failed_ = true;
  events.front() = {.kind = PortEvent::Kind::kFailed};
  return 1 + peers_.take_events(events.subspan(1));
}

const PortCounters& UdpPort::counters() const {
  counters_.receive_overflows = 0;
  for (std::size_t i = 0; i < lines_; ++i) {
    counters_.receive_overflows += datagrams_dropped(line_[i]->socket);
  }
  return counters_;
}

std::size_t UdpPort::path_bytes(Destination to) const {
  const std::size_t known = peers_.path_bytes(to);
  return known == 0 ? limits_.packet_bytes : std::min(known, limits_.packet_bytes);
}

}  // namespace pullman::nic::udp
