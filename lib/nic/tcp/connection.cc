#include "nic/tcp/connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace pullman::nic::tcp {
namespace {

std::size_t framed_bytes(const Outgoing& packet) {
  return kLengthBytes + packet.head.size() + packet.payload.size();
}

}  // namespace

// The first held bytes are the preamble.
Connection::Connection(Socket socket, State state, std::uint64_t name, std::uint16_t own_port)
    : socket_(std::move(socket)), state_(state), ours_(state == State::kConnecting), name_(name) {
  const Preamble preamble = make_preamble(own_port);
  held_.assign(preamble.begin(), preamble.end());
}

std::size_t Connection::send(std::span<const Outgoing> packets, Gather& gather,
                             PortCounters& counters) {
  std::size_t done = 0;
  while (done < packets.size() && may_write()) {
    const auto part = packets.subspan(done, std::min(packets.size() - done, Gather::kMaxPackets));
    gather.clear();
    gather.add(held());
    for (const Outgoing& packet : part) gather.add(packet);
    if (!write(gather)) break;
    done += settle(part, written_);
  }
  if (done == packets.size()) [[likely]]
    return done;
  return done + hold_or_drop(packets.subspan(done), counters);
}

bool Connection::may_write() {
  if (state_ == State::kBroken) return false;
  return !blocked_ || ++tries_ % kTry == 0;
}

// Returns false if nothing was sent.
bool Connection::write(Gather& gather) {
  const ssize_t sent = gather.send(fd());
  if (sent < 0) {
    // ENOTCONN, or EAGAIN while the connection is being made.
    const int error = errno;
    const bool wait = error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EINTR;
    if (wait) {
      blocked_ = true;
    } else {
      refused_ = state_ == State::kConnecting && error == ECONNREFUSED;
      handle_end(error);
    }
    return false;
  }
  if (state_ == State::kConnecting) state_ = State::kOpen;
  written_ = static_cast<std::size_t>(sent);
  blocked_ = written_ < gather.bytes();
  note_progress();
  return true;
}

void Connection::note_progress() {
  refusals_ = 0;
  stuck_ = false;
}

// Returns how many packets were sent, at least in part; the rest of a packet is held.
std::size_t Connection::settle(std::span<const Outgoing> packets, std::size_t written) {
  const std::size_t before = std::min(written, held().size());
  drop_held(before);
  written -= before;
  if (!held().empty()) return 0;
  std::size_t done = 0;
  while (done < packets.size() && written >= framed_bytes(packets[done])) {
    written -= framed_bytes(packets[done++]);
  }
  if (written != 0) hold(packets[done++], written);
  return done;
}

void Connection::drop_held(std::size_t bytes) {
  held_from_ += bytes;
  if (held_from_ == held_.size()) {
    if (held_.capacity() > kMaxKept) held_ = {};
    held_.clear();
    held_from_ = 0;
    held_packets_ = 0;
  } else if (held_from_ >= kMaxHeld / 2) {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(held_from_));
    held_from_ = 0;
  }
}

// Holds the packet from that byte on, counted with its length field.
void Connection::hold(const Outgoing& packet, std::size_t from) {
  const Length length = make_length(packet.head.size() + packet.payload.size());
  for (std::span<const std::byte> piece :
       {std::span<const std::byte>(length), packet.head, packet.payload}) {
    const std::size_t skipped = std::min(from, piece.size());
    from -= skipped;
    piece = piece.subspan(skipped);
    held_.insert(held_.end(), piece.begin(), piece.end());
  }
  ++held_packets_;
}

std::size_t Connection::hold_or_drop(std::span<const Outgoing> packets, PortCounters& counters) {
  if (state_ == State::kBroken) {
    counters.send_errors += packets.size();
    return packets.size();
  }
  std::size_t done = 0;
  while (done < packets.size() && held().size() + framed_bytes(packets[done]) <= kMaxHeld) {
    hold(packets[done++], 0);
  }
  return done == packets.size() ? done : done + refuse(packets.size() - done, counters);
}

// There is no room for the packets. Returns 0 if they must be offered again; else they are dropped.
std::size_t Connection::refuse(std::size_t packets, PortCounters& counters) {
  if (!stuck_) {
    if (++refusals_ < kPatience) return 0;
    const std::size_t left = unacknowledged_bytes(socket_);
    stuck_ = left == unacknowledged_;
    unacknowledged_ = left;
    refusals_ = 0;
    if (!stuck_) return 0;
  }
  counters.send_errors += packets;
  return packets;
}

// For a connection that is being made this is the outcome, good or bad: the system call tells.
void Connection::handle_writable(Gather& gather) {
  if (state_ == State::kBroken) return;
  gather.clear();
  gather.add(held());
  if (write(gather)) drop_held(written_);
  if (state_ == State::kEnding) end();
}

// Loses nothing that was accepted: the kernel sends what it has, then its FIN.
void Connection::end() {
  if (state_ != State::kBroken) state_ = State::kEnding;
  if (held().empty()) shutdown(fd(), SHUT_WR);
}

}  // namespace pullman::nic::tcp
