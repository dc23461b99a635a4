// One TCP connection and the packets sent by it: each system call sends held bytes first, then new
// packets; what the kernel does not take is held, within a bound.
//
// A connection is stuck when it has refused packets many times while the kernel has not sent a
// byte. Then packets are dropped, as a network drops them, until bytes leave again: so no
// destination blocks the others for ever. Reads no clock: it counts.
//
// The Receiver handles received bytes, and keeps here what belongs to the connection.
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
    kConnecting,  // being made; packets are held
    kOpen,        // established, as far as is known
    kEnding,      // nothing is sent after the held bytes; still receives
    kBroken,      // to be closed
  };

  // Begins in kConnecting if we opened it, in kOpen if we accepted it. `name`: see name().
  // `own_port`: for the preamble.
  Connection(Socket socket, State state, std::uint64_t name, std::uint16_t own_port);

  int fd() const { return socket_.fd(); }
  const Socket& socket() const { return socket_; }
  State state() const { return state_; }
  std::uint64_t name() const { return name_; }
  bool is_ours() const { return ours_; }
  // The remote host answered our SYN with a reset: nobody listens there. The kernel accepts that
  // only from a sender that has seen the SYN.
  bool is_refused() const { return refused_; }

  // Returns how many of the packets were accepted: sent, held, or dropped (counted).
  std::size_t send(std::span<const Outgoing> packets, Gather& gather, PortCounters& counters);

  // The socket can be written to, or has failed.
  void handle_writable(Gather& gather);
  // `error`: the kernel's error number; 0 if the remote end has closed it.
  void handle_end(int error = 0) {
    state_ = State::kBroken;
    error_ = error;
  }
  void end();

  // Whether the kernel should report when more can be sent.
  bool awaits_writable() const { return blocked_; }
  bool is_stuck() const { return stuck_; }
  // Returns why it is broken; 0 if not by an error.
  int error() const { return error_; }
  // Returns how many packets have been held since none was: they are lost if it ends now.
  std::size_t held_packets() const { return held_packets_; }

  // --- state that belongs to other components
  Way* way = nullptr;            // the port it leads to, once known
  bool greeted = false;          // the remote preamble has come
  bool watched_for_out = false;  // the kernel was asked to report when more can be sent
  Tail tail;
  std::size_t usual_bytes = 0;  // length of the last datagram, with its length field

  // Bytes held.
  static constexpr std::size_t kMaxHeld = 256 * 1024;

 private:
  // Most memory that is kept when no bytes are held.
  static constexpr std::size_t kMaxKept = 64 * 1024;
  // While blocked only every kTry-th send tries the kernel: a caller that only sends hears no
  // events.
  static constexpr std::uint32_t kTry = 16;
  // Consecutive refusals after which the kernel is asked whether bytes leave. A polling loop is
  // refused about once a microsecond.
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
  std::uint32_t refusals_ = 0;      // since bytes left, or since the kernel was last asked
  std::size_t unacknowledged_ = 0;  // when the kernel was last asked
  std::vector<std::byte> held_;     // the rest of a packet, and more packets
  std::size_t held_from_ = 0;       // bytes before it have been sent
  std::size_t held_packets_ = 0;
  std::size_t written_ = 0;  // by the last write()
};

}  // namespace pullman::nic::tcp
