// The system calls of the data path, without the C library's cancellation points: in a process with
// threads these cost two atomic exchanges per call, and a thread that is cancelled in one would
// leave an engine half-way through a turn. A library that is preloaded in front of the C library's
// sockets is bypassed. Errors are reported as by the C library: -1 and errno.
//
// The thread sanitizer learns from the C library's calls what came from another thread of the
// process through a socket, so these are used with it.
#pragma once

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <span>

namespace pullman::nic::udp::calls {

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define PULLMAN_CALLS_ARE_WATCHED
#endif
#endif

#if defined(PULLMAN_CALLS_ARE_WATCHED) || defined(__SANITIZE_THREAD__)

inline ssize_t receive(int socket, void* bytes, std::size_t room) {
  return recv(socket, bytes, room, 0);
}
inline ssize_t receive(int socket, msghdr& message) {
  return recvmsg(socket, &message, 0);
}
inline int receive(int socket, mmsghdr* messages, std::size_t count) {
  return recvmmsg(socket, messages, static_cast<unsigned>(count), 0, nullptr);
}
inline ssize_t send(int socket, std::span<const std::byte> bytes, const sockaddr* to,
                    socklen_t to_bytes) {
  return sendto(socket, bytes.data(), bytes.size(), 0, to, to_bytes);
}
inline ssize_t send(int socket, const msghdr& message) {
  return sendmsg(socket, &message, 0);
}
inline int send(int socket, mmsghdr* messages, std::size_t count) {
  return sendmmsg(socket, messages, static_cast<unsigned>(count), 0);
}

#else

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

#endif
#undef PULLMAN_CALLS_ARE_WATCHED

}  // namespace pullman::nic::udp::calls
