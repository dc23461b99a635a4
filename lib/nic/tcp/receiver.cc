#include "nic/tcp/receiver.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pullman::nic::tcp {
namespace {

// Returns how many bytes the datagram that begins with these still lacks; at least for its length
// field.
std::size_t missing_of(std::span<const std::byte> begun) {
  if (begun.empty()) return 0;
  if (begun.size() < kLengthBytes) return kLengthBytes - begun.size();
  const auto length =
      std::to_integer<std::size_t>(begun[0]) << 8 | std::to_integer<std::size_t>(begun[1]);
  return kLengthBytes + length - begun.size();
}

// Returns how many bytes to ask for: the missing ones, and then whole datagrams of the usual size,
// as far as there is room.
std::size_t whole_datagrams(std::size_t room, std::size_t missing, std::size_t usual) {
  if (usual == 0 || missing + usual > room) return room;
  return missing + (room - missing) / usual * usual;
}

}  // namespace

bool Receiver::read(Connection& connection) {
  may_have_more_ = false;
  const std::size_t missing = connection.greeted ? missing_of(connection.tail.bytes()) : 0;
  const auto aim = aim_for(connection);
  if (!aim) return false;
  const std::size_t asked =
      connection.greeted ? whole_datagrams(aim->room, missing, connection.usual_bytes) : aim->room;
  const ssize_t got = recv(connection.fd(), aim->at, asked, 0);
  if (got <= 0) {
    if (got == 0) {
      connection.handle_end();
    } else if (errno != EAGAIN && errno != EINTR) {
      connection.handle_end(errno);
    }
    leave(connection, aim->buffer, aim->there);
    return false;
  }
  has_some_ = true;
  may_have_more_ = static_cast<std::size_t>(got) == asked;
  buffer_ = aim->buffer;
  from_ = connection.name();
  rest_ = {aim->at - aim->there.size(), aim->there.size() + static_cast<std::size_t>(got)};
  return true;
}

// Reads behind the tail, in its buffer, if the rest of its datagram and some more fit there; else
// moves the tail to a new buffer. Nothing if all buffers are lent.
std::optional<Receiver::Aim> Receiver::aim_for(Connection& connection) {
  constexpr std::size_t kBytes = ReceiveSlab::kBytes;
  Tail& tail = connection.tail;
  const std::span<const std::byte> there = tail.bytes();
  if (tail.slab() != nullptr) {
    const std::uint32_t buffer = tail.buffer();
    std::byte* const base = slab_.bytes(buffer);
    const auto end = static_cast<std::size_t>(there.data() + there.size() - base);
    if (kBytes - end >= std::max(missing_of(there), kBytes / 4)) {
      tail.hand_over();
      return Aim{buffer, there, base + end, kBytes - end};
    }
  }
  if (slab_.free() == 0) return std::nullopt;
  const std::uint32_t buffer = slab_.peek(0);
  std::byte* const base = slab_.bytes(buffer);
  slab_.take(1);
  slab_.share(buffer, 1);
  const std::size_t size = there.size();
  if (size != 0) std::memcpy(base, there.data(), size);
  tail.clear();
  return Aim{buffer, {base, size}, base + size, kBytes - size};
}

// Makes the rest of the buffer the connection's tail. There it costs no copy, but occupies a
// buffer; while fewer than half are free it is copied instead.
void Receiver::leave(Connection& connection, std::uint32_t buffer,
                     std::span<const std::byte> rest) {
  if (rest.empty()) {
    slab_.release(buffer, 1);
  } else if (slab_.free() >= kBuffers / 2) {
    connection.tail.leave_in(slab_, buffer, rest);
  } else {
    connection.tail.copy(rest);
    slab_.release(buffer, 1);
  }
}

void Receiver::finish(Connection* from) {
  has_some_ = false;
  if (from != nullptr && from->state() != Connection::State::kBroken) {
    leave(*from, buffer_, rest_);
  } else {
    slab_.release(buffer_, 1);
  }
}

std::optional<std::uint16_t> Receiver::take_preamble(Connection& from, PortCounters& counters) {
  if (rest_.size() < kPreambleBytes) {
    finish(&from);
    return std::nullopt;
  }
  const auto port = read_preamble(rest_);
  rest_ = rest_.subspan(kPreambleBytes);
  if (!port) {
    ++counters.receive_errors;
    from.handle_end();
    finish(&from);
  }
  return port;
}

std::size_t Receiver::hand_out(std::span<Incoming> batch, Connection* from,
                               PortCounters& counters) {
  std::size_t count = 0;
  while (count < batch.size()) {
    std::span<const std::byte> datagram;
    const Next next = take_datagram(rest_, datagram);
    if (next != Next::kDatagram) {
      if (next == Next::kNonsense) {
        ++counters.receive_errors;
        if (from != nullptr) from->handle_end();
      }
      finish(from);
      return count;
    }
    if (from != nullptr) from->usual_bytes = kLengthBytes + datagram.size();
    if (datagram.size() > packet_bytes_) {
      ++counters.receive_truncated;
      continue;
    }
    slab_.lend(buffer_);
    batch[count++] = {.bytes = datagram, .buffer = buffer_};
  }
  if (rest_.empty()) finish(from);
  return count;
}

}  // namespace pullman::nic::tcp
