// All connections of a port, and which of them leads to whom.
//
// Connects when there is something to send, accepts what comes, and hears from the kernel (epoll)
// which connections can be read or written. Knows nothing of datagrams.
//
// One connection serves a pair of ports, both ways: whoever is called learns from the preamble by
// which address its caller is known, and answers by the same connection. It takes the place of an
// own one only where that is not open, or is stuck. Two that call each other at once keep both
// connections, and each sends by its own: nothing is lost, and none has to win.
//
// Who is believed: the host of an address is the kernel's word, the port behind it the caller's. So
// another program of the peer's host may draw packets meant for the peer to itself, as long as
// there is no connection yet; it can neither read what is sealed nor be taken for the peer (that
// takes the proof of wire.md), and a port that asks first is not concerned.
//
// Bounds: kMost connections. Of those that have said nothing yet kMaxSilent, the oldest goes
// first. Beyond kMost one goes that none of our destinations needs; is there none, nobody comes in.
//
// Where connecting failed nobody tries again before the port's timer has run, which is the
// kernel's (a driver reads no clock): 10 ms, or less if it runs already. Beside that an attempt
// lasts until the network has answered. What is sent meanwhile is lost and counted, so sender's
// patience alone decides when a connection comes about, as with datagrams.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nic/peers.h"
#include "nic/tcp/connection.h"
#include "nic/tcp/gather.h"
#include "nic/tcp/socket.h"

namespace pullman::nic::tcp {

// To the port with that address.
struct Way {
  Address address;
  Connection* connection = nullptr;
  std::uint32_t connections = 0;   // that lead there; one of them is sent by
  std::uint32_t destinations = 0;  // of ours that are this address
  bool by_others = false;          // only other NICs lead there
  bool resting = false;            // connecting failed just now
};

class ConnectionTable {
 public:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kMaxSilent = 256;

  // Connections are bound to `device` if the listener is; another listens for what comes by others.
  ConnectionTable(Socket listener, const std::string& device, const Buffers& buffers,
                  PortCounters& counters);

  const Address& own() const { return own_; }
  bool bound() const { return !device_.empty(); }
  int wait_fd() const { return epoll_.fd(); }
  std::size_t connections() const { return count_; }

  // The port at that address is sent to, or not any more.
  Way& add_destination(const Address& address);
  void remove_destination(Way& way);

  // The connection to send by; null if there is none just now.
  Connection* connection_for(Way& way, const sockaddr* name, socklen_t bytes);
  // After a send: does what it made necessary.
  void tend(Connection& connection);

  // Hears what has happened, in one system call.
  void look(Gather& gather);
  // Of those that look() found readable, the next; null if there is none.
  Connection* next_readable();

  // Ports at which nobody listens, as was said since the last call.
  std::vector<Address> take_refused() { return std::exchange(refused_, {}); }

  // By its name; null if it is no more.
  Connection* find(std::uint64_t name) const;

  // The far end has said where it listens. False if that is not to be.
  bool introduce(Connection& connection, std::uint16_t port);
  // What is held is lost.
  void close(Connection& connection);

 private:
  static constexpr std::size_t kEventsAtOnce = 64;
  static constexpr std::size_t kMaxRefused = 16;  // that wait to be taken
  static constexpr std::size_t kAcceptsAtOnce = 64;

  struct Hash {
    std::size_t operator()(const Address& address) const {
      const auto* bytes = reinterpret_cast<const char*>(address.bytes.data());
      return std::hash<std::string_view>()({bytes, address.length});
    }
  };

  Connection* add(Socket socket, Connection::State state);
  template <typename Is>
  Connection* oldest(Is is) const;
  bool close_one();
  bool make_room();
  void watch(Connection& connection, int operation);
  void accept_all(const Socket& listener);
  void refuse_one(const Socket& listener);
  void note_error(int error);
  void note_refused(const Way& way);
  void rest(Way& way);
  void end_rests();
  void drop_if_unused(Way& way);

  Socket listener_;
  std::string device_;  // that connections are bound to; empty: to none
  Socket by_others_;    // listens without a device; none where listener_ has none
  Address own_;
  Buffers buffers_;
  PortCounters& counters_;
  Socket epoll_;
  Socket timer_;
  Socket spare_;  // given up to refuse a connection when there are no more descriptors
  std::unordered_map<Address, Way, Hash> ways_;
  std::vector<std::unique_ptr<Connection>> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<Address> refused_;
  std::size_t count_ = 0;
  std::size_t silent_ = 0;
  std::uint64_t serials_ = 0;
  std::array<epoll_event, kEventsAtOnce> events_;
  std::size_t next_event_ = 0;
  std::size_t event_count_ = 0;
};

}  // namespace pullman::nic::tcp
