#include "nic/tcp/tcp_port.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "nic/devices.h"

namespace pullman::nic::tcp {
namespace {

// Packets of 32 KiB, each copied twice.
constexpr std::size_t kPacketsPerTurn = 8;

// Unread packets are held by the socket and, beyond its room, by the sending port.
std::size_t packets_in(const Buffers& buffers, std::size_t packet_bytes) {
  const std::size_t bytes = buffers.holds_bytes + Connection::kMaxHeld;
  return std::max<std::size_t>(1, bytes / (packet_bytes + kLengthBytes));
}

}  // namespace

TcpPort::TcpPort(const Device& device, const PortOptions& options)
    : TcpPort(open_listener(with_port(device.address, options.port), device.name,
                            shares_subnet(device, device.address) ? Tie::kDevice : Tie::kAddress),
              device, options) {}

TcpPort::TcpPort(Socket listener, const Device& device, const PortOptions& options)
    : buffers_(choose_buffers(listener, options.receive_buffer_bytes)),
      limits_{.packet_bytes = packet_bytes_of(device, options),
              .packets_per_turn = kPacketsPerTurn},
      report_(device),
      receiver_(limits_.packet_bytes),
      connection_table_(prepare(std::move(listener), options), device.name, buffers_, counters_),
      peers_(connection_table_.own()),
      interface_(device, connection_table_.own(), options.link_events) {
  limits_.receive_packets = packets_in(buffers_, limits_.packet_bytes);
}

int TcpPort::wait_fd() {
  if (!wait_set_) {
    wait_set_.emplace();
    if (!wait_set_->add(connection_table_.wait_fd()) || !wait_set_->add_if_any(interface_.fd())) {
      wait_set_.reset();
      return -1;
    }
  }
  return wait_set_->fd();
}

// Accepted connections inherit the listener's buffers.
Socket TcpPort::prepare(Socket listener, const PortOptions& options) {
  set_buffers(listener, buffers_);
  if (options.busy_poll_us != 0) set_busy_poll(listener, options.busy_poll_us);
  return listener;
}

std::size_t TcpPort::send(std::span<const Outgoing> batch) {
  std::size_t taken = 0;
  while (taken < batch.size()) {
    const auto rest = batch.subspan(taken);
    std::size_t together = 1;
    while (together < rest.size() && rest[together].to == rest.front().to) ++together;
    const std::size_t more = send_some(rest.first(together));
    taken += more;
    if (more < together) break;
  }
  counters_.sent += taken;
  counters_.send_refused += taken < batch.size();
  return taken;
}

// Sends packets for one destination.
std::size_t TcpPort::send_some(std::span<const Outgoing> packets) {
  const Destination to = packets.front().to;
  PULLMAN_DCHECK(to < ways_.size() && ways_[to] != nullptr);
  Connection* const connection =
      connection_table_.connection_for(*ways_[to], peers_.name_of(to), peers_.name_bytes());
  if (connection == nullptr) {
    counters_.send_errors += packets.size();
    return packets.size();
  }
  const std::size_t taken = connection->send(packets, gather_, counters_);
  connection_table_.tend(*connection);
  return taken;
}

std::size_t TcpPort::receive(std::span<Incoming> batch, std::size_t enough) {
  batch = batch.first(enough);
  std::size_t count = receiver_.has_some() ? hand_out(batch) : 0;
  ++looked_;
  bool first = true;
  for (std::size_t reads = 0; reads < kMaxReads && !receiver_.has_some(); ++reads) {
    Connection* const connection = next_to_read(std::exchange(first, false));
    if (connection == nullptr) break;
    if (receiver_.read(*connection)) {
      busy_ = connection->name();
      if (!connection->greeted) greet(*connection);
    }
    connection_table_.tend(*connection);
    if (receiver_.has_some()) count += hand_out(batch.subspan(count));
  }
  counters_.received += count;
  return count;
}

// Continues with the last read, then with connections found readable, then with the busy one alone
// or a poll of all. If nothing has come one system call is enough.
Connection* TcpPort::next_to_read(bool first) {
  Connection* const busy = connection_table_.find(busy_);
  if (receiver_.may_have_more() && looked_ < kRestAlone && busy != nullptr) return busy;
  if (Connection* readable = connection_table_.next_readable()) return readable;
  const std::size_t others = connection_table_.connections() - (busy != nullptr ? 1 : 0);
  if (looked_ < (others == 0 ? kRestAlone : kRestAmongMany)) return first ? busy : nullptr;
  looked_ = 0;
  connection_table_.look(gather_);
  return connection_table_.next_readable();
}

std::size_t TcpPort::hand_out(std::span<Incoming> batch) {
  Connection* const from = connection_table_.find(receiver_.from());
  const std::size_t count = receiver_.hand_out(batch, from, counters_);
  if (from != nullptr) connection_table_.tend(*from);
  return count;
}

void TcpPort::greet(Connection& connection) {
  const auto port = receiver_.take_preamble(connection, counters_);
  if (port && !connection_table_.introduce(connection, *port)) receiver_.drop();
}

// Packets of one buffer are adjacent in the batch.
void TcpPort::give_back(std::span<const Incoming> batch) {
  for (std::size_t at = 0; at < batch.size();) {
    const std::uint64_t buffer = batch[at].buffer;
    std::size_t end = at + 1;
    while (end < batch.size() && batch[end].buffer == buffer) ++end;
    receiver_.give_back(buffer, static_cast<std::uint32_t>(end - at));
    at = end;
  }
}

// Resolves to the address as the kernel uses it: with our own scope, if it needs one.
void TcpPort::resolve(const Address& address, std::uint64_t cookie) {
  const Destination to = peers_.resolve(address, cookie);
  if (to == kInvalidDestination) return;
  if (to >= ways_.size()) ways_.resize(to + 1, nullptr);
  const auto reached = from_sockaddr(peers_.name_of(to), peers_.name_bytes());
  const bool by_others = connection_table_.bound() && interface_.only_by_others(*reached);
  ways_[to] = &connection_table_.add_destination(*reached);
  ways_[to]->by_others = by_others;
}

std::size_t TcpPort::poll_events(std::span<PortEvent> events) {
  report_.look(counters_.errors);
  for (const Address& address : connection_table_.take_refused()) {
    sockaddr_storage name;
    to_sockaddr(address, name);
    // It is a hint: a filter that resets connections for a while looks the same.
    peers_.note_refused(reinterpret_cast<const sockaddr*>(&name), {});
  }
  const std::size_t count = peers_.take_events(events);
  return count + interface_.poll(events.subspan(count));
}

void TcpPort::forget(Destination to) {
  connection_table_.remove_destination(*ways_[to]);
  ways_[to] = nullptr;
  peers_.forget(to);
}

}  // namespace pullman::nic::tcp
