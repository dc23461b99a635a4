// The receiving half of a port: one read of a connection fills a buffer, and its datagrams are lent
// one by one. The rest, an incomplete datagram, stays with its connection. A read asks for as many
// bytes as whole datagrams need if they are as long as the last one: so hardly anything is left
// over. Allocates nothing, unless buffers run out.
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

  // Reads once, when the bytes of the last read were all handed out. Returns false if nothing came:
  // then the connection may be broken.
  bool read(Connection& connection);
  // Whether the last read brought as many bytes as it asked for.
  bool may_have_more() const { return may_have_more_; }

  bool has_some() const { return has_some_; }
  std::uint64_t from() const { return from_; }  // name of the connection of the bytes

  // Takes the remote preamble off the stream, if that begins with one now. Invalid bytes break the
  // connection.
  std::optional<std::uint16_t> take_preamble(Connection& from, PortCounters& counters);
  // `from`: null if that connection is closed.
  std::size_t hand_out(std::span<Incoming> batch, Connection* from, PortCounters& counters);
  // Drops bytes that were not handed out.
  void drop() { finish(nullptr); }
  void give_back(std::uint64_t buffer, std::uint32_t packets) { slab_.release(buffer, packets); }

 private:
  static constexpr std::size_t kBuffers = 64;

  // The destination of a read: behind the bytes that the buffer already holds.
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
  // --- bytes that were read last and are not handed out
  bool has_some_ = false;
  bool may_have_more_ = false;
  std::uint32_t buffer_ = 0;
  std::uint64_t from_ = 0;
  std::span<const std::byte> rest_;
};

}  // namespace pullman::nic::tcp
