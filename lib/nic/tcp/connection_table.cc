#include "nic/tcp/connection_table.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "nic/port.h"

namespace pullman::nic::tcp {
namespace {

using State = Connection::State;

constexpr long kRestNs = 10'000'000;
// A connection's name is its slot and, above that, a serial number.
constexpr unsigned kPlaceBits = 16;
constexpr std::uint64_t kListener = ~std::uint64_t{0};
constexpr std::uint64_t kTimer = kListener - 1;
constexpr std::uint64_t kByOthers = kListener - 2;

std::size_t place_of(std::uint64_t name) {
  return name & ((1u << kPlaceBits) - 1);
}

bool watch_for_input(const Socket& epoll, const Socket& socket, std::uint64_t name) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = name;
  return epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, socket.fd(), &event) == 0;
}

bool is_silent(const Connection& connection) {
  return connection.way == nullptr;
}

bool serves(const Connection* connection) {
  return connection != nullptr &&
         (connection->state() == State::kConnecting || connection->state() == State::kOpen);
}

}  // namespace

ConnectionTable::ConnectionTable(Socket listener, const std::string& device, const Buffers& buffers,
                                 PortCounters& counters)
    : listener_(std::move(listener)),
      device_(device_of(listener_) != 0 ? device : ""),
      by_others_(bound() ? listen_beside(listener_) : Socket()),
      own_(bound_address(listener_, device)),
      buffers_(buffers),
      counters_(counters),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      spare_(eventfd(0, EFD_CLOEXEC)) {
  if (epoll_.fd() < 0 || timer_.fd() < 0) {
    throw NicError("the system gives no more descriptors: raise the limit (ulimit -n)");
  }
  if (by_others_.fd() >= 0) set_buffers(by_others_, buffers_);
  if (!watch_for_input(epoll_, listener_, kListener) || !watch_for_input(epoll_, timer_, kTimer) ||
      (by_others_.fd() >= 0 && !watch_for_input(epoll_, by_others_, kByOthers))) {
    throw NicError(fmt::format("cannot watch the sockets of {} (epoll_ctl): {}", device,
                               std::strerror(errno)));
  }
}

Way& ConnectionTable::add_destination(const Address& address) {
  Way& way = ways_[address];
  way.address = address;
  ++way.destinations;
  return way;
}

// Closes connections that we opened to it when everything is delivered; accepted ones are the
// initiator's to close.
void ConnectionTable::remove_destination(Way& way) {
  PULLMAN_CHECK(way.destinations > 0);
  if (--way.destinations > 0) return;
  Connection* const connection = way.connection;
  if (connection != nullptr && connection->is_ours()) {
    way.connection = nullptr;
    connection->end();
    return tend(*connection);
  }
  drop_if_unused(way);
}

void ConnectionTable::drop_if_unused(Way& way) {
  if (way.destinations + way.connections == 0 && !way.resting) ways_.erase(Address(way.address));
}

Connection* ConnectionTable::connection_for(Way& way, const sockaddr* name, socklen_t bytes) {
  if (serves(way.connection)) [[likely]]
    return way.connection;
  if (way.resting || !make_room()) return nullptr;
  Socket socket = begin_to_connect(own_, way.by_others ? "" : device_, buffers_, name, bytes);
  if (socket.fd() < 0) {
    const int why = errno;
    note_error(why);
    if (why == ECONNREFUSED) note_refused(way);  // by this host itself
    rest(way);
    return nullptr;
  }
  Connection* const connection = add(std::move(socket), State::kConnecting);
  if (connection == nullptr) {
    rest(way);
    return nullptr;
  }
  connection->way = &way;
  ++way.connections;
  return way.connection = connection;
}

// Returns null if the connection cannot be watched: its packets would not be noticed.
Connection* ConnectionTable::add(Socket socket, State state) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  const std::uint64_t name = ++serials_ << kPlaceBits | place;
  if (!watch_for_input(epoll_, socket, name)) {
    note_error(errno);
    free_.push_back(place);
    return nullptr;
  }
  slots_[place] = std::make_unique<Connection>(std::move(socket), state, name, port_of(own_));
  ++count_;
  return slots_[place].get();
}

Connection* ConnectionTable::find(std::uint64_t name) const {
  const std::size_t place = place_of(name);
  Connection* const found = place < slots_.size() ? slots_[place].get() : nullptr;
  return found != nullptr && found->name() == name ? found : nullptr;
}

template <typename Is>
Connection* ConnectionTable::oldest(Is is) const {
  Connection* found = nullptr;
  for (const auto& connection : slots_) {
    if (connection == nullptr || !is(*connection)) continue;
    if (found == nullptr || connection->name() < found->name()) found = connection.get();
  }
  return found;
}

bool ConnectionTable::close_one() {
  Connection* victim = silent_ == 0 ? nullptr : oldest(is_silent);
  if (victim == nullptr) {
    victim = oldest([](const Connection& connection) { return connection.way->destinations == 0; });
  }
  if (victim == nullptr) return false;
  close(*victim);
  return true;
}

bool ConnectionTable::make_room() {
  return count_ < kMost || close_one();
}

// Does not rest after a connection that was open and useful.
void ConnectionTable::close(Connection& connection) {
  counters_.send_errors += connection.held_packets();
  note_error(connection.error());
  Way* const way = connection.way;
  const bool failed = connection.is_ours() && !connection.greeted;
  const std::size_t place = place_of(connection.name());
  silent_ -= way == nullptr;
  --count_;
  const std::unique_ptr<Connection> gone = std::move(slots_[place]);
  free_.push_back(static_cast<std::uint32_t>(place));
  if (way == nullptr) return;
  --way->connections;
  if (connection.is_refused()) note_refused(*way);
  if (way->connection == &connection) {
    const auto leads_there = [&](const Connection& other) {
      return other.way == way && serves(&other);
    };
    way->connection = way->connections == 0 ? nullptr : oldest(leads_there);
    if (way->connection == nullptr && failed) rest(*way);
  }
  drop_if_unused(*way);
}

void ConnectionTable::note_error(int error) {
  if (error != 0) counters_.errors.note(class_of(error), error);
}

void ConnectionTable::note_refused(const Way& way) {
  if (refused_.size() < kMaxRefused) refused_.push_back(way.address);
}

void ConnectionTable::rest(Way& way) {
  way.resting = true;
  itimerspec spec{};
  timerfd_gettime(timer_.fd(), &spec);
  if (spec.it_value.tv_nsec != 0) return;
  spec.it_value.tv_nsec = kRestNs;
  timerfd_settime(timer_.fd(), 0, &spec, nullptr);
}

void ConnectionTable::end_rests() {
  std::uint64_t times = 0;
  if (read(timer_.fd(), &times, sizeof times) < 0) return;
  for (auto at = ways_.begin(); at != ways_.end();) {
    Way& way = (at++)->second;
    way.resting = false;
    drop_if_unused(way);
  }
}

void ConnectionTable::tend(Connection& connection) {
  if (connection.state() == State::kBroken) return close(connection);
  if (connection.awaits_writable() == connection.watched_for_out) [[likely]]
    return;
  const bool for_out = connection.awaits_writable();
  epoll_event event{};
  event.events = EPOLLIN | (for_out ? EPOLLOUT : 0u);
  event.data.u64 = connection.name();
  // If that fails it is tried again by the next tend().
  if (epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, connection.fd(), &event) == 0) {
    connection.watched_for_out = for_out;
  }
}

void ConnectionTable::look(Gather& gather) {
  next_event_ = 0;
  const int got = epoll_wait(epoll_.fd(), events_.data(), static_cast<int>(events_.size()), 0);
  event_count_ = static_cast<std::size_t>(std::max(got, 0));
  for (std::size_t i = 0; i < event_count_; ++i) {
    const epoll_event& event = events_[i];
    if (event.data.u64 == kListener) {
      accept_all(listener_);
    } else if (event.data.u64 == kByOthers) {
      accept_all(by_others_);
    } else if (event.data.u64 == kTimer) {
      end_rests();
    } else if (Connection* connection = find(event.data.u64);
               connection != nullptr && (event.events & EPOLLOUT) != 0) {
      connection->handle_writable(gather);
      tend(*connection);
    }
  }
}

Connection* ConnectionTable::next_readable() {
  while (next_event_ < event_count_) {
    const epoll_event& event = events_[next_event_++];
    if ((event.events & ~std::uint32_t{EPOLLOUT}) == 0) continue;
    if (Connection* connection = find(event.data.u64)) return connection;
  }
  return nullptr;
}

// accept() reports a lack of descriptors before a lack of connections: so after a descriptor was
// freed for a connection it accepts no more before the next look. If others took the descriptor, as
// they may if the whole system lacks them, no second connection is closed for nothing.
void ConnectionTable::accept_all(const Socket& listener) {
  bool freed = false;
  for (std::size_t left = kAcceptsAtOnce; left > 0; --left) {
    Socket socket = accept_from(listener);
    if (socket.fd() < 0) {
      if (errno == ECONNABORTED) continue;
      if (errno != EMFILE && errno != ENFILE) return;
      if (freed || !close_one()) return refuse_one(listener);
      freed = true;
      left = 2;
      continue;
    }
    if (silent_ >= kMaxSilent) close(*oldest(is_silent));
    if (!make_room()) continue;
    silent_ += add(std::move(socket), State::kOpen) != nullptr;
  }
}

// Without a descriptor for it the connection would wait, and the port's wait_fd() would stay
// readable.
void ConnectionTable::refuse_one(const Socket& listener) {
  spare_ = Socket();
  accept_from(listener);
  spare_ = Socket(eventfd(0, EFD_CLOEXEC));
}

bool ConnectionTable::introduce(Connection& connection, std::uint16_t port) {
  if (is_own_echo(connection.socket())) {
    connection.handle_end();
    return false;
  }
  connection.greeted = true;
  if (connection.way != nullptr) return true;
  const Address address = with_port(far_address(connection.socket()), port);
  Way& way = ways_[address];
  way.address = address;
  --silent_;
  connection.way = &way;
  ++way.connections;
  if (!serves(way.connection) || way.connection->state() == State::kConnecting ||
      way.connection->is_stuck()) {
    way.connection = &connection;
  }
  return true;
}

}  // namespace pullman::nic::tcp
