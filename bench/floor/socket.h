// A bare UDP socket: bound, and connected if there is one other end.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bare {

class Socket {
 public:
  Socket(const std::string& own, std::uint16_t port)
      : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    const sockaddr_in name = name_of(own, port);
    check(::bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name), "bind");
    for (const int option : {SO_RCVBUF, SO_RCVBUFFORCE, SO_SNDBUF, SO_SNDBUFFORCE}) {
      set(SOL_SOCKET, option, 8 << 20);
    }
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(fd_); }

  void connect(const std::string& peer, std::uint16_t port) const {
    const sockaddr_in name = name_of(peer, port);
    check(::connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name), "connect");
  }
  void set(int level, int option, int value) const {
    (void)::setsockopt(fd_, level, option, &value, sizeof value);
  }
  int fd() const { return fd_; }

 private:
  static sockaddr_in name_of(const std::string& host, std::uint16_t port) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &name.sin_addr) != 1) {
      throw std::runtime_error(fmt::format("'{}' is no IPv4 address", host));
    }
    return name;
  }
  static void check(int result, const char* call) {
    if (result != 0) throw std::runtime_error(fmt::format("{}(): {}", call, std::strerror(errno)));
  }

  int fd_;
};

}  // namespace bare
