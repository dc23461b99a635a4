#include "nic/udp/receiver.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nic/udp/calls.h"
#include "nic/udp/errors.h"

namespace pullman::nic::udp {
namespace {

// Most calls of one receive() without a usable packet: because datagrams are too long, or because
// of errors. Each error takes many entries out of the socket's error queue, and anybody can cause
// some.
constexpr int kMaxEmptyCalls = 64;
constexpr int kErrors = 4;

// Returns the size of the packets that the datagram consists of; 0 if it is one packet.
std::uint32_t packet_bytes_in(const msghdr& message) {
  if (message.msg_controllen < sizeof(cmsghdr)) [[likely]]
    return 0;
  const auto* part = static_cast<const cmsghdr*>(message.msg_control);
  if (part->cmsg_level != IPPROTO_UDP || part->cmsg_type != UDP_GRO) return 0;
  int size = 0;
  std::memcpy(&size, CMSG_DATA(part), sizeof size);
  return static_cast<std::uint32_t>(std::max(size, 0));
}

}  // namespace

Receiver::Receiver(int socket, Peers& peers, std::size_t packet_bytes, bool bursts,
                   std::uint64_t names)
    : socket_(socket),
      peers_(peers),
      packet_bytes_(packet_bytes),
      names_(names),
      coalescing_(socket, bursts) {
  for (std::size_t i = 0; i < kMaxAtOnce; ++i) {
    msghdr& message = messages_[i].msg_hdr;
    message.msg_iov = &segments_[i];
    message.msg_iovlen = 1;
    message.msg_control = controls_[i].bytes.data();
    segments_[i].iov_len = ReceiveSlab::kBytes;
  }
}

// Receives one packet straight into the caller's batch: the usual case where latency matters. Any
// other outcome of the call is left to receive_several(), which calls again.
std::size_t Receiver::receive_lone(std::span<Incoming> batch, PortCounters& counters) {
  const std::uint32_t buffer = slab_.peek(0);
  std::byte* bytes = slab_.bytes(buffer);
  const ssize_t got = calls::receive(socket_, bytes, ReceiveSlab::kBytes);
  if (got < 0 && errno == EAGAIN) {
    emptied_ = true;
    coalescing_.note(0, 0);
    return 0;
  }
  const auto length = static_cast<std::size_t>(got);
  if (got < 0 || length > packet_bytes_) [[unlikely]] {
    if (got >= 0) {
      ++counters.receive_truncated;
    } else if (!survives(errno, counters)) {
      return 0;
    }
    return receive_several(batch, 1, counters);
  }
  emptied_ = false;
  slab_.take(1);
  slab_.share(buffer, 1);
  together_ = 1;
  batch.front() = {.bytes = {bytes, length}, .buffer = names_ + buffer};
  coalescing_.note(1, length);
  ++counters.received;
  return 1;
}

std::size_t Receiver::receive_several(std::span<Incoming> batch, std::size_t enough,
                                      PortCounters& counters) {
  std::size_t count = hand_out(batch);
  std::size_t datagrams = 0;
  emptied_ = false;
  for (int empty = 0; count < enough && empty < kMaxEmptyCalls; ++empty) {
    const std::size_t asked = std::min({datagrams_for(enough - count), datagrams_, slab_.free()});
    const std::size_t got = asked != 0 ? fill(asked, counters) : 0;
    if (got == 0) {
      datagrams_ = 1;
      break;
    }
    const std::size_t more = hand_out(batch.subspan(count));
    if (more != 0) empty = 0;
    count += more;
    datagrams += got;
    if (got < asked) {
      datagrams_ = 1;
      emptied_ = true;
      break;
    }
    // A single one is received by a cheaper call.
    if (datagrams > 1) datagrams_ = std::min(2 * datagrams_, kMaxAtOnce);
  }
  coalescing_.note(count, messages_[0].msg_len);
  counters.received += count;
  return count;
}

std::size_t Receiver::hand_out(std::span<Incoming> batch) {
  std::size_t count = 0;
  while (count < batch.size() && next_ < count_) {
    Arrival& arrival = arrivals_[next_];
    const std::size_t bytes = std::min(arrival.packet_bytes, arrival.bytes - arrival.at);
    batch[count++] = {.bytes = {slab_.bytes(arrival.buffer) + arrival.at, bytes},
                      .buffer = names_ + arrival.buffer};
    arrival.at += arrival.packet_bytes;
    next_ += arrival.at >= arrival.bytes;
  }
  return count;
}

// Receives up to `wanted` datagrams into the arrivals, which were all handed out. Returns how many
// came.
std::size_t Receiver::fill(std::size_t wanted, PortCounters& counters) {
  next_ = count_ = 0;
  for (int tries = 0; tries < kErrors; ++tries) {
    const int got = call(wanted);
    if (got >= 0) {
      const auto datagrams = static_cast<std::size_t>(got);
      slab_.take(datagrams);
      for (std::size_t i = 0; i < datagrams; ++i) accept(i, counters);
      return datagrams;
    }
    if (!survives(errno, counters)) {
      emptied_ = true;
      return 0;
    }
  }
  return 0;
}

int Receiver::call(std::size_t datagrams) {
  if (datagrams == 1) {
    const ssize_t bytes = call_for_one();
    if (bytes < 0) return -1;
    messages_[0].msg_len = static_cast<unsigned>(bytes);
    return 1;
  }
  for (std::size_t i = 0; i < datagrams; ++i) aim(i);
  return calls::receive(socket_, messages_.data(), datagrams);
}

ssize_t Receiver::call_for_one() {
  aim(0);
  if (coalescing_.on()) return calls::receive(socket_, messages_[0].msg_hdr);
  messages_[0].msg_hdr.msg_controllen = 0;
  return calls::receive(socket_, segments_[0].iov_base, ReceiveSlab::kBytes);
}

void Receiver::aim(std::size_t place) {
  aimed_[place] = slab_.peek(place);
  segments_[place].iov_base = slab_.bytes(aimed_[place]);
  messages_[place].msg_hdr.msg_controllen = sizeof(Control);
}

// Notes an arrival, unless its packets are longer than allowed: then its buffer is free at once.
void Receiver::accept(std::size_t place, PortCounters& counters) {
  const std::uint32_t buffer = aimed_[place];
  const std::uint32_t bytes = messages_[place].msg_len;
  const std::uint32_t together = packet_bytes_in(messages_[place].msg_hdr);
  const std::uint32_t each = together != 0 ? together : std::max(bytes, 1u);
  const std::uint32_t packets = std::max((bytes + each - 1) / each, 1u);
  slab_.share(buffer, packets);
  if (std::min(each, bytes) > packet_bytes_) {
    counters.receive_truncated += packets;
    slab_.release(buffer, packets);
    return;
  }
  together_ = packets;
  counters.bursts_received += packets > 1;
  arrivals_[count_++] = {.buffer = buffer, .at = 0, .bytes = bytes, .packet_bytes = each};
}

// An error is the network's answer to an earlier send, and tells nothing of arrived packets.
bool Receiver::survives(int error, PortCounters& counters) {
  if (error == EAGAIN) [[likely]]
    return false;
  if (is_fatal(error)) {
    broken_ = true;
    counters.errors.note(class_of(error), error);
    return false;
  }
  drain_errors(socket_, peers_, counters);
  return true;
}

}  // namespace pullman::nic::udp
