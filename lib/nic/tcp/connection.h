// One TCP connection and the packets that go out by it: in one system call with what was held back
// before, and held back, within a bound, when the kernel takes no more.
//
// A connection is stuck when it has refused packets many times and the kernel has not got rid of a
// byte in the meantime. Then packets are dropped, as a network drops them, until bytes leave again:
// so no destination keeps the others waiting for ever. Knows nobody's clock: it counts.
//
// What comes in by it is the Receiver's affair, which keeps here what belongs to the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nic/port.h"
#include "nic/tcp/framing.h"
#include "nic/tcp/gather.h"
#include "nic/tcp/socket.h"
#include "nic/tcp/tail.h"

namespace pullman::nic::tcp {

struct Way;  // see connection_table.h

class Connection {
 public:
  enum class State : std::uint8_t {
    kConnecting,  // packets are held
    kOpen,        // as far as we know
    kEnding,      // nothing will be sent behind what is held; what comes is still received
    kBroken,      // to be closed
  };

  // Begins with kConnecting if it is ours, with kOpen if it came in. `name`: see name().
  // `own_port`: for the preamble.
  Connection(Socket socket, State state, std::uint64_t name, std::uint16_t own_port);

  int fd() const { return socket_.fd(); }
  const Socket& socket() const { return socket_; }
  State state() const { return state_; }
  std::uint64_t name() const { return name_; }
  bool is_ours() const { return ours_; }
  // Nobody listens there, said the far host to our SYN: the kernel believes nobody who has not seen
  // that.
  bool is_refused() const { return refused_; }

  // How many of the packets were taken: sent, held, or dropped (counted).
  std::size_t send(std::span<const Outgoing> packets, Gather& gather, PortCounters& counters);

  // The socket can be written to, or has failed.
  void handle_writable(Gather& gather);
  // `error`: what the kernel says of it; 0 if the far end has ended it.
  void handle_end(int error = 0) {
    state_ = State::kBroken;
    error_ = error;
  }
  void end();

  // The kernel is to say when more can be sent.
  bool awaits_writable() const { return blocked_; }
  bool is_stuck() const { return stuck_; }
  // Why it is broken; 0: not by an error.
  int error() const { return error_; }
  // Packets that are held, or were since nothing was: lost if it ends now.
  std::size_t held_packets() const { return held_packets_; }

  // --- of others
  Way* way = nullptr;            // whom it leads to, once that is known
  bool greeted = false;          // the far preamble has come
  bool watched_for_out = false;  // the kernel has been asked to say when more can be sent
  Tail tail;
  std::size_t usual_bytes = 0;  // of the last datagram and its length

  // Bytes held.
  static constexpr std::size_t kMaxHeld = 256 * 1024;

 private:
  // Of the memory that was for them, when none are.
  static constexpr std::size_t kMaxKept = 64 * 1024;
  // Asked to send while blocked: once in so many times the kernel is tried all the same, since a
  // caller that only sends hears no events.
  static constexpr std::uint32_t kTry = 16;
  // Refusals in a row after which it is asked whether bytes leave. A loop that polls is refused
  // about once a microsecond.
  static constexpr std::uint32_t kPatience = 2048;

  std::span<const std::byte> held() const { return std::span(held_).subspan(held_from_); }
  bool may_write();
  bool write(Gather& gather);
  std::size_t settle(std::span<const Outgoing> packets, std::size_t written);
  void hold(const Outgoing& packet, std::size_t from);
  std::size_t hold_or_drop(std::span<const Outgoing> packets, PortCounters& counters);
  std::size_t refuse(std::size_t packets, PortCounters& counters);
  void drop_held(std::size_t bytes);
  void note_progress();

  Socket socket_;
  State state_;
  int error_ = 0;
  const bool ours_;
  bool refused_ = false;
  std::uint64_t name_;
  bool blocked_ = false;
  bool stuck_ = false;
  std::uint32_t tries_ = 0;         // while blocked
  std::uint32_t refusals_ = 0;      // since bytes left, or it was last asked whether they do
  std::size_t unacknowledged_ = 0;  // then
  std::vector<std::byte> held_;     // the rest of a packet, and packets
  std::size_t held_from_ = 0;       // what is before has left
  std::size_t held_packets_ = 0;
  std::size_t written_ = 0;  // by the last call
};

}  // namespace pullman::nic::tcp
