// The receiving half of a port: one read of a connection fills a buffer, and the datagrams in it
// are lent one by one. What is left of a datagram that is not whole stays with its connection. A
// read asks for as much as ends where a datagram does, if they go on being as long as the last one:
// so hardly anything is left in a stream. Allocates nothing, unless buffers are short.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "nic/port.h"
#include "nic/receive_slab.h"
#include "nic/tcp/connection.h"

namespace pullman::nic::tcp {

class Receiver {
 public:
  explicit Receiver(std::size_t packet_bytes) : packet_bytes_(packet_bytes) {}

  // Reads once, when all of the read before was handed out. False if nothing came: then the
  // connection may be broken.
  bool read(Connection& connection);
  // Whether the last read brought as much as it asked for.
  bool may_have_more() const { return may_have_more_; }

  bool has_some() const { return has_some_; }
  std::uint64_t from() const { return from_; }  // the name of the connection it came by

  // The far preamble, if the stream begins with it now; it is taken off. Nonsense breaks the
  // connection.
  std::optional<std::uint16_t> take_preamble(Connection& from, PortCounters& counters);
  // `from`: null if that connection is no more.
  std::size_t hand_out(std::span<Incoming> batch, Connection* from, PortCounters& counters);
  // What is not handed out is nobody's.
  void drop() { finish(nullptr); }
  void give_back(std::uint64_t buffer, std::uint32_t packets) { slab_.release(buffer, packets); }

 private:
  static constexpr std::size_t kBuffers = 64;

  // Where a read is to go: behind the bytes that are there already.
  struct Aim {
    std::uint32_t buffer = 0;
    std::span<const std::byte> there;
    std::byte* at = nullptr;
    std::size_t room = 0;
  };

  std::optional<Aim> aim_for(Connection& connection);
  void leave(Connection& connection, std::uint32_t buffer, std::span<const std::byte> rest);
  void finish(Connection* from);

  std::size_t packet_bytes_;
  ReceiveSlab slab_{kBuffers};
  // What was read last and is not handed out.
  bool has_some_ = false;
  bool may_have_more_ = false;
  std::uint32_t buffer_ = 0;
  std::uint64_t from_ = 0;
  std::span<const std::byte> rest_;
};

}  // namespace pullman::nic::tcp
