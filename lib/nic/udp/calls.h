// The data path's system calls, without the cancellation points that the C library makes of them:
// in a process with threads these take two atomic exchanges a call, and a thread that is cancelled
// in one would leave an engine half-way through a turn. Errors are told as the C library does: -1
// and errno.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <span>

namespace pullman::nic::udp::calls {

inline ssize_t receive(int socket, void* bytes, std::size_t room) {
  return syscall(SYS_recvfrom, socket, bytes, room, 0, nullptr, nullptr);
}

inline ssize_t receive(int socket, msghdr& message) {
  return syscall(SYS_recvmsg, socket, &message, 0);
}

inline int receive(int socket, mmsghdr* messages, std::size_t count) {
  return static_cast<int>(syscall(SYS_recvmmsg, socket, messages, count, 0, nullptr));
}

inline ssize_t send(int socket, std::span<const std::byte> bytes, const sockaddr* to,
                    socklen_t to_bytes) {
  return syscall(SYS_sendto, socket, bytes.data(), bytes.size(), 0, to, to_bytes);
}

inline ssize_t send(int socket, const msghdr& message) {
  return syscall(SYS_sendmsg, socket, &message, 0);
}

inline int send(int socket, mmsghdr* messages, std::size_t count) {
  return static_cast<int>(syscall(SYS_sendmmsg, socket, messages, count, 0));
}

}  // namespace pullman::nic::udp::calls
