// All connections of a port, and the remote port that each leads to.
//
// Connects when there is something to send, accepts incoming connections, and asks the kernel
// (epoll) which ones can be read or written. Knows nothing of datagrams.
//
// One connection serves a pair of ports in both directions: the acceptor learns the initiator's
// address from the preamble and answers by the same connection, unless it has an open one of its
// own that is not stuck. If both connect at once they keep both connections, and each sends by its
// own: nothing is lost, and no collision has to be resolved.
//
// Trust: the kernel vouches for the host of an address, only the initiator for its port. So, while
// there is no connection yet, another program on the peer's host can attract packets meant for the
// peer. It can neither read what is sealed nor be taken for the peer (that needs the proof of
// wire.md), and a port that connects first is not affected.
//
// Bounds: kMost connections. At most kMaxSilent of them have sent nothing yet; the oldest of those
// is closed first. At kMost one is closed that none of our destinations needs; if there is none, no
// connection is accepted.
//
// After a failed attempt to connect there is none before the port's timer has run, which is the
// kernel's (a driver reads no clock): 10 ms, or less if it runs already. Otherwise an attempt lasts
// until the network has answered. Packets sent meanwhile are lost and counted, so only the sender's
// patience decides when a connection is made, as with datagrams.
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

// The connections to the port with that address.
struct Way {
  Address address;
  Connection* connection = nullptr;
  std::uint32_t connections = 0;   // that lead there; one of them is used to send
  std::uint32_t destinations = 0;  // of ours with this address
  bool by_others = false;          // only other NICs lead there
  bool resting = false;            // connecting failed recently
};

class ConnectionTable {
 public:
  static constexpr std::size_t kMost = 4096;
  static constexpr std::size_t kMaxSilent = 256;

  // Connections are bound to `device` if the listener is; then another listener accepts those that
  // come by other NICs.
  ConnectionTable(Socket listener, const std::string& device, const Buffers& buffers,
                  PortCounters& counters);

  const Address& own() const { return own_; }
  bool bound() const { return !device_.empty(); }
  int wait_fd() const { return epoll_.fd(); }
  std::size_t connections() const { return count_; }

  // The port at that address is a destination, or is not any more.
  Way& add_destination(const Address& address);
  void remove_destination(Way& way);

  // Returns the connection to send by, or null if there is none now.
  Connection* connection_for(Way& way, const sockaddr* name, socklen_t bytes);
  // Call it after a send: does the work that it made necessary.
  void tend(Connection& connection);

  // Asks the kernel once what has happened, accepts connections and sends what waited.
  void look(Gather& gather);
  // Returns the next connection that look() found readable, or null.
  Connection* next_readable();

  // Returns the ports that have refused a connection since the last call.
  std::vector<Address> take_refused() { return std::exchange(refused_, {}); }

  // Finds a connection by its name; null if it is closed.
  Connection* find(std::uint64_t name) const;

  // The remote end has told its listening port. Returns false if the connection must be closed.
  bool introduce(Connection& connection, std::uint16_t port);
  // Closes it; held bytes are lost.
  void close(Connection& connection);

 private:
  static constexpr std::size_t kEventsAtOnce = 64;
  static constexpr std::size_t kMaxRefused = 16;  // most that wait to be taken
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
  std::string device_;  // that connections are bound to; empty: none
  Socket by_others_;    // listens without a device; none if listener_ is not bound to one
  Address own_;
  Buffers buffers_;
  PortCounters& counters_;
  Socket epoll_;
  Socket timer_;
  Socket spare_;  // closed to refuse a connection when there are no more descriptors
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
