#include "nic/udp/sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "nic/udp/calls.h"
#include "nic/udp/errors.h"

namespace pullman::nic::udp {
namespace {

std::size_t size_of(const Outgoing& packet) {
  return packet.head.size() + packet.payload.size();
}

// Memory for the bursts of a call, one behind the other. A thread uses it for all its ports, since
// what it has just used is in its cache; nothing stays there between calls. Ports may still send
// when the main thread has destroyed its thread-locals: from destructors of static objects.
constexpr std::size_t kTogetherBytes = 4 * 65536;
thread_local std::byte* bursts_place = nullptr;

struct BurstsPlace {
  BurstsPlace() { bursts_place = new std::byte[kTogetherBytes]; }
  ~BurstsPlace() { delete[] std::exchange(bursts_place, nullptr); }
};

std::byte* room_for_bursts() {
  if (bursts_place == nullptr) [[unlikely]] {
    thread_local const BurstsPlace until_the_thread_ends;
    // So late nothing frees it any more.
    if (bursts_place == nullptr) bursts_place = new std::byte[kTogetherBytes];
  }
  return bursts_place;
}

std::size_t bytes_of(std::span<const Outgoing> burst) {
  return (burst.size() - 1) * size_of(burst.front()) + size_of(burst.back());
}

// Returns whether the packets of a burst stand one behind the other already.
bool are_together(std::span<const Outgoing> burst) {
  const std::byte* next = burst.front().head.data();
  return std::all_of(burst.begin(), burst.end(), [&](const Outgoing& packet) {
    const bool here = packet.payload.empty() && packet.head.data() == next;
    next += packet.head.size();
    return here;
  });
}

iovec piece_of(std::span<const std::byte> bytes) {
  // sendmsg() does not write.
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

}  // namespace

Sender::Sender(int socket, Peers& peers, bool bursts)
    : socket_(socket), peers_(peers), bursts_(bursts) {
  for (Control& control : controls_) {
    cmsghdr header{};
    header.cmsg_level = IPPROTO_UDP;
    header.cmsg_type = UDP_SEGMENT;
    header.cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    std::memcpy(control.bytes.data(), &header, sizeof header);
  }
}

std::size_t Sender::send(std::span<const Outgoing> batch, PortCounters& counters) {
  std::size_t taken = 0;
  bool full = broken_;
  while (taken < batch.size() && !full) {
    const auto rest = batch.subspan(taken);
    if (rest.size() == 1) [[likely]] {
      full = send_one(rest.front(), counters) == Outcome::kFull;
      taken += full ? 0 : 1;
    } else {
      taken += send_several(rest, counters, full);
    }
  }
  counters.sent += taken;
  counters.send_refused += taken < batch.size();
  return taken;
}

ssize_t Sender::call(const Outgoing& packet) const {
  const bool direct = is_direct(packet);
  if (direct && packet.payload.empty()) [[likely]]
    return calls::send(direct_socket_, packet.head, nullptr, 0);
  const int socket = socket_for(packet);
  const sockaddr* to = direct ? nullptr : peers_.name_of(packet.to);
  const socklen_t bytes = direct ? 0 : peers_.name_bytes();
  if (packet.payload.empty()) return calls::send(socket, packet.head, to, bytes);
  std::array<iovec, 2> segments{piece_of(packet.head), piece_of(packet.payload)};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(to);
  message.msg_namelen = bytes;
  message.msg_iov = segments.data();
  message.msg_iovlen = segments.size();
  return calls::send(socket, message);
}

// Returns how many of the prepared messages were sent; negative if the first was not.
int Sender::call_for_several(int socket) {
  if (count_ == 1) return calls::send(socket, messages_[0].msg_hdr) < 0 ? -1 : 1;
  return calls::send(socket, messages_.data(), count_);
}

// An error may be the network's answer to an earlier packet, reported by the first call after it.
// So this packet is tried once more; a second error is about this packet.
Sender::Outcome Sender::send_one(const Outgoing& packet, PortCounters& counters) {
  for (int attempt = 0;; ++attempt) {
    if (call(packet) >= 0) [[likely]] {
      if (refusals_.any()) [[unlikely]]
        refusals_.note_sent(packet.to);
      return Outcome::kTaken;
    }
    const int error = errno;
    const Trouble trouble = trouble_of(error, false);
    if (trouble == Trouble::kFull) return Outcome::kFull;
    if (trouble == Trouble::kRefused) {
      if (!refusals_.close_abortively(packet.to)) return Outcome::kFull;
      note_lost(trouble, error, counters);
      return Outcome::kTaken;
    }
    broken_ = broken_ || trouble == Trouble::kBroken;
    misses_device_ = misses_device_ || trouble == Trouble::kNoWay;
    drain_errors(socket_for(packet), peers_, counters);
    if (attempt == 0 && !broken_) continue;
    if (trouble == Trouble::kForbidden && !told_forbidden_) tell_forbidden(packet.to);
    note_lost(trouble, error, counters);
    return Outcome::kTaken;
  }
}

// Warns once: the peer seems to be silent, and only this end knows why.
void Sender::tell_forbidden(Destination to) {
  told_forbidden_ = true;
  const auto address = from_sockaddr(peers_.name_of(to), peers_.name_bytes());
  log().warn("a packet filter of this host refuses packets to {}: see 'nft list ruleset'",
             address ? to_string(*address) : "a peer");
}

// Sends as much as one call takes; returns how many packets were accepted.
std::size_t Sender::send_several(std::span<const Outgoing> batch, PortCounters& counters,
                                 bool& full) {
  prepare(batch);
  const int sent = call_for_several(socket_for(batch.front()));
  if (sent < 0) {
    const bool burst = packets_[0] > 1;
    const Trouble trouble = trouble_of(errno, burst);
    full = trouble == Trouble::kFull;
    if (full) return 0;
    if (trouble == Trouble::kRefused) return send_shorter(batch.first(packets_[0]), counters, full);
    if (trouble == Trouble::kNoOffload)
      return send_refused(batch.first(packets_[0]), counters, full);
    // The call has cleared the socket's error, so nothing else would read the error queue.
    drain_errors(socket_for(batch.front()), peers_, counters);
    return send_apart(batch.first(packets_[0]), counters, full);
  }
  const auto messages = static_cast<std::size_t>(sent);
  // sendmmsg() does not report what stopped it (sendmmsg(2), BUGS), and the error is cleared.
  if (messages < count_) drain_errors(socket_for(batch.front()), peers_, counters);
  std::size_t taken = 0;
  for (std::size_t i = 0; i < messages; ++i) {
    taken += packets_[i];
    counters.bursts_sent += packets_[i] > 1;
  }
  if (limit_.is_short()) [[unlikely]]
    limit_.note_sent();
  if (refusals_.any()) [[unlikely]]
    refusals_.note_sent(batch.front().to);
  return taken;
}

// The device's queue has no room for a burst, or for anything to that destination. If the burst's
// first packets can be sent singly shorter bursts may succeed, too: a queue that is bounded in
// bytes would never have room for one as long.
std::size_t Sender::send_shorter(std::span<const Outgoing> burst, PortCounters& counters,
                                 bool& full) {
  const std::uint64_t errors = counters.send_errors;
  const std::size_t taken = send_apart(burst, counters, full);
  if (burst.size() > 1 && taken > counters.send_errors - errors) limit_.halve();
  return taken;
}

// A burst was refused: sends its packets singly. If all succeed it was refused for being a burst.
// Older kernels report the same for packets that the interface has become too narrow for, and all
// kernels for a "blackhole" route.
std::size_t Sender::send_refused(std::span<const Outgoing> burst, PortCounters& counters,
                                 bool& full) {
  const int error = errno;
  const std::uint64_t errors = counters.send_errors;
  const std::size_t taken = send_apart(burst, counters, full);
  if (taken > 0 && counters.send_errors == errors) {
    log().info("bursts are refused ({}): packets are sent one by one", std::strerror(error));
    bursts_ = false;
    ++counters.offload_refused;
  }
  return taken;
}

// Sends the packets singly, so that each gets its own result.
std::size_t Sender::send_apart(std::span<const Outgoing> batch, PortCounters& counters,
                               bool& full) {
  std::size_t taken = 0;
  for (const Outgoing& packet : batch) {
    full = send_one(packet, counters) == Outcome::kFull || broken_;
    if (full) break;
    ++taken;
  }
  return taken;
}

// Divides the batch into messages: as many packets as there is room for and as use the first one's
// socket.
void Sender::prepare(std::span<const Outgoing> batch) {
  const auto packets = batch.first(std::min(batch.size(), kMaxPackets));
  const bool direct = is_direct(packets.front());
  const int socket = socket_for(packets.front());
  std::size_t segments = 0;
  std::size_t together = 0;
  count_ = 0;
  for (std::size_t at = 0; at < packets.size(); at += packets_[count_++]) {
    const Outgoing& first = packets[at];
    const std::size_t length = burst_length(packets.subspan(at));
    const auto burst = packets.subspan(at, length);
    const std::size_t size = size_of(first);
    const bool copies = length > 1 && !are_together(burst);
    if (socket_for(first) != socket || (copies && together + length * size > kTogetherBytes)) break;
    msghdr& message = messages_[count_].msg_hdr;
    message.msg_name = direct ? nullptr : const_cast<sockaddr*>(peers_.name_of(first.to));
    message.msg_namelen = direct ? 0 : peers_.name_bytes();
    message.msg_iov = segments_.data() + segments;
    message.msg_control = nullptr;
    message.msg_controllen = 0;
    if (length > 1) {
      if (copies) {
        std::byte* const place = room_for_bursts() + together;
        const std::size_t bytes = put_together(burst, place);
        segments_[segments++] = {place, bytes};
        together += bytes;
        PULLMAN_CHECK(together <= kTogetherBytes);
      } else {
        segments_[segments++] = piece_of({first.head.data(), bytes_of(burst)});
      }
      Control& control = controls_[count_];
      const auto segment = static_cast<std::uint16_t>(size);
      std::memcpy(control.bytes.data() + CMSG_LEN(0), &segment, sizeof segment);
      message.msg_control = control.bytes.data();
      message.msg_controllen = control.bytes.size();
    } else {
      segments_[segments++] = piece_of(first.head);
      if (!first.payload.empty()) segments_[segments++] = piece_of(first.payload);
    }
    message.msg_iovlen = static_cast<std::size_t>(segments_.data() + segments - message.msg_iov);
    packets_[count_] = static_cast<std::uint32_t>(length);
  }
}

// Returns how many packets from the front can make one burst: those of the first one's size, and a
// shorter one behind them.
std::size_t Sender::burst_length(std::span<const Outgoing> batch) const {
  const std::size_t size = size_of(batch.front());
  const std::size_t most = bursts_ ? std::min(batch.size(), kMaxTogether) : 1;
  std::size_t bytes = size;
  for (std::size_t length = 1; length < most; ++length) {
    const Outgoing& next = batch[length];
    const std::size_t more = size_of(next);
    bytes += more;
    if (next.to != batch.front().to || more > size || more == 0 || bytes > limit_.bytes())
      return length;
    if (more < size) return length + 1;
  }
  return most;
}

// Copies the packets of a burst together; returns the number of bytes.
std::size_t Sender::put_together(std::span<const Outgoing> burst, std::byte* at) {
  std::byte* const begin = at;
  for (const Outgoing& packet : burst) {
    for (const auto piece : {packet.head, packet.payload}) {
      if (!piece.empty()) std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
  }
  return static_cast<std::size_t>(at - begin);
}

}  // namespace pullman::nic::udp
