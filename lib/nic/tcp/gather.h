// The bytes that one system call sends: small segments are copied together, large ones stay in
// place.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "nic/port.h"
#include "nic/tcp/framing.h"

namespace pullman::nic::tcp {

class Gather {
 public:
  static constexpr std::size_t kMaxPackets = kBatchPackets;  // per call

  void clear() { count_ = copied_ = bytes_ = 0; }
  std::size_t bytes() const { return bytes_; }

  // Adds bytes of the stream; at most once, before packets.
  void add(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    bytes_ += bytes.size();
    if (bytes.size() <= kWorthCopying) {
      append_copy(bytes);
    } else {
      // sendmsg() does not write.
      segments_[count_++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
  }

  // Adds a packet behind its length; at most kMaxPackets.
  void add(const Outgoing& packet) {
    add(make_length(packet.head.size() + packet.payload.size()));
    add(packet.head);
    add(packet.payload);
  }

  ssize_t send(int socket) {
    msghdr message{};
    message.msg_iov = segments_.data();
    message.msg_iovlen = count_;
    return sendmsg(socket, &message, MSG_NOSIGNAL);
  }

 private:
  // A segment costs the kernel about as much as copying this many bytes.
  static constexpr std::size_t kWorthCopying = 256;
  static constexpr std::size_t kMaxSegments = 3 * kMaxPackets + 1;

  void append_copy(std::span<const std::byte> bytes) {
    std::byte* const at = copies_.data() + copied_;
    std::memcpy(at, bytes.data(), bytes.size());
    copied_ += bytes.size();
    iovec* const last = count_ == 0 ? nullptr : &segments_[count_ - 1];
    if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == at) {
      last->iov_len += bytes.size();
    } else {
      segments_[count_++] = {at, bytes.size()};
    }
  }

  std::size_t count_ = 0;   // of `segments_`
  std::size_t copied_ = 0;  // bytes in `copies_`
  std::size_t bytes_ = 0;   // in total
  std::array<iovec, kMaxSegments> segments_;
  std::array<std::byte, kMaxSegments * kWorthCopying> copies_;
};

}  // namespace pullman::nic::tcp
