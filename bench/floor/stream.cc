// Bursts of 44 packets, four under way; whoever takes them copies each where it belongs, and says
// so with a short packet.
#include "stream.h"

#include <fmt/format.h>
#include <netinet/udp.h>

#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "socket.h"

namespace bare {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kPort = 7310;
constexpr std::size_t kPacket = 1472;
constexpr std::size_t kHead = 28;
constexpr std::size_t kBurst = 44;
constexpr unsigned kUnderWay = 4;
constexpr auto kPatience = std::chrono::seconds(2);

class Burst {
 public:
  explicit Burst(const Stream& options) : together_(kBurst * kPacket), copied_(options.copy) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kBurst; ++i) {
      segments_[count++] = {heads_[i].data(), kHead};
      segments_[count++] = {data_.data() + i * (kPacket - kHead), kPacket - kHead};
    }
    const bool whole = options.copy || options.segments == 1;
    message_.msg_iov = whole ? &whole_ : segments_.data();
    message_.msg_iovlen = whole ? 1 : count;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message_);
    part->cmsg_level = IPPROTO_UDP;
    part->cmsg_type = UDP_SEGMENT;
    part->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const std::uint16_t each = kPacket;
    std::memcpy(CMSG_DATA(part), &each, sizeof each);
  }
  bool send(int fd) {
    if (copied_) put_together();
    return ::sendmsg(fd, &message_, 0) > 0;
  }

 private:
  void put_together() {
    char* to = together_.data();
    for (const iovec& segment : segments_) {
      std::memcpy(to, segment.iov_base, segment.iov_len);
      to += segment.iov_len;
    }
  }

  std::vector<char> data_ = std::vector<char>(kBurst * kPacket), together_;
  iovec whole_{together_.data(), together_.size()};
  bool copied_;
  std::array<std::array<char, kHead>, kBurst> heads_{};
  std::array<iovec, 2 * kBurst> segments_{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control_{};
  msghdr message_{};
};

}  // namespace

void take(const Stream& options) {
  const Socket socket(options.own, kPort);
  socket.set(IPPROTO_UDP, UDP_GRO, 1);
  fmt::print("ready\n");
  std::fflush(stdout);
  std::vector<char> arrived(65536), place(65536);
  double bytes = 0;
  Clock::time_point begin, heard = Clock::now();
  bool warm = false;
  for (;;) {
    sockaddr_in from{};
    socklen_t length = sizeof from;
    const ssize_t got = ::recvfrom(socket.fd(), arrived.data(), arrived.size(), 0,
                                   reinterpret_cast<sockaddr*>(&from), &length);
    const Clock::time_point now = Clock::now();
    if (got <= 0) {
      if (now - heard > kPatience) throw std::runtime_error("nobody sends");
      continue;
    }
    heard = now;
    std::memcpy(place.data(), arrived.data(), static_cast<std::size_t>(got));
    ::sendto(socket.fd(), place.data(), kHead, 0, reinterpret_cast<sockaddr*>(&from), length);
    if (begin == Clock::time_point{}) begin = now;
    bytes += static_cast<double>(got);
    const double took = std::chrono::duration<double>(now - begin).count();
    if (!warm && took > options.seconds / 4) {
      warm = true;
      begin = now;
      bytes = 0;
    } else if (warm && took > options.seconds) {
      fmt::print("{:.0f}\n", bytes / 1e6 / took);
      return;
    }
  }
}

void pour(const Stream& options) {
  const Socket socket(options.own, kPort);
  socket.connect(options.peer, kPort);
  Burst burst(options);
  std::array<char, kPacket> word;
  unsigned under_way = 0;
  for (Clock::time_point heard = Clock::now(); Clock::now() - heard < kPatience;) {
    while (::recv(socket.fd(), word.data(), word.size(), 0) > 0) {
      if (under_way > 0) --under_way;
      heard = Clock::now();
    }
    if (errno == ECONNREFUSED) return;
    while (under_way < kUnderWay && burst.send(socket.fd())) ++under_way;
  }
}

}  // namespace bare
