#include "raw_udp.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "options.h"
#include "raw_interface.h"

namespace perf {

namespace {

constexpr std::size_t kMaxBytes = 65507;  // of a burst
constexpr std::size_t kMaxPackets = 64;
constexpr int kBufferBytes = 16 << 20;

[[noreturn]] void fail(const char* call) {
  throw Failure(fmt::format("{} failed: {}", call, std::strerror(errno)));
}

void set(int socket, int level, int option, int value) {
  (void)::setsockopt(socket, level, option, &value, sizeof value);
}

int open_at(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    throw Failure(fmt::format("'{}' is no address: {}", host, gai_strerror(error)));
  }
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int result = socket < 0 ? -1 : ::bind(socket, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  if (result != 0) fail("bind()");
  return socket;
}

// The size of the packets in what was received; 0 if it is one.
std::size_t packet_bytes_in(msghdr& message) {
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  if (part == nullptr || part->cmsg_level != IPPROTO_UDP || part->cmsg_type != UDP_GRO) return 0;
  int size = 0;
  std::memcpy(&size, CMSG_DATA(part), sizeof size);
  return static_cast<std::size_t>(size);
}

}  // namespace

RawUdp::RawUdp(const std::string& host) {
  const RawInterface interface = find_raw_interface(host);
  packet_bytes_ = interface.datagram_bytes();
  max_packets_ = std::clamp<std::size_t>(kMaxBytes / packet_bytes_, 1, kMaxPackets);
  burst_.resize(kMaxBytes + packet_bytes_);
  received_.resize(64 * 1024);
  socket_ = open_at(interface.host);
  for (const int option : {SO_RCVBUF, SO_RCVBUFFORCE, SO_SNDBUF, SO_SNDBUFFORCE}) {
    set(socket_, SOL_SOCKET, option, kBufferBytes / 2);
  }
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    fail("getsockname()");
  }
  address_.resize(length);
  std::memcpy(address_.data(), &name, length);
}

RawUdp::~RawUdp() {
  if (socket_ >= 0) ::close(socket_);
}

void RawUdp::set_peer(const std::vector<std::byte>& address) {
  sockaddr_storage name{};
  if (address.size() != address_.size()) {
    throw Failure("the other end's address is of no use here: are both ends of one driver?");
  }
  std::memcpy(&name, address.data(), address.size());
  const auto length = static_cast<socklen_t>(address.size());
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&name), length) != 0) fail("connect()");
}

void RawUdp::expect_bursts(bool on) {
  drain();
  bursts_ = on;
  set(socket_, IPPROTO_UDP, UDP_GRO, on ? 1 : 0);
}

// Packets of a burst are of one size, but for the last, which may be shorter.
bool RawUdp::fits(std::size_t length) const {
  if (burst_packets_ == 0) return true;
  if (burst_packets_ == kMaxPackets || burst_bytes_ + length > kMaxBytes) return false;
  return !burst_ended_ && length <= burst_each_;
}

bool RawUdp::send(std::size_t length) {
  if (!bursts_) {
    return ::send(socket_, burst_.data(), length, 0) >= 0 || errno != EAGAIN;
  }
  if (!fits(length)) {
    const std::byte* packet = burst_.data() + burst_bytes_;
    if (!send_burst()) return false;
    std::memmove(burst_.data(), packet, length);
  }
  if (burst_packets_ == 0) burst_each_ = length;
  burst_ended_ = length < burst_each_;
  burst_bytes_ += length;
  ++burst_packets_;
  return true;
}

// Anything but a full socket is the kernel's word about an earlier packet, or a loss like any
// other.
bool RawUdp::send_burst() {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  iovec segment{burst_.data(), burst_bytes_};
  msghdr message{};
  message.msg_iov = &segment;
  message.msg_iovlen = 1;
  if (burst_packets_ > 1) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = IPPROTO_UDP;
    part->cmsg_type = UDP_SEGMENT;
    part->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto each = static_cast<std::uint16_t>(burst_each_);
    std::memcpy(CMSG_DATA(part), &each, sizeof each);
  }
  if (::sendmsg(socket_, &message, 0) < 0 && errno == EAGAIN) return false;
  burst_bytes_ = burst_packets_ = 0;
  burst_ended_ = false;
  return true;
}

bool RawUdp::receive(std::span<const std::byte>& packet) {
  if (!bursts_) {
    const ssize_t bytes = ::recv(socket_, received_.data(), received_.size(), 0);
    if (bytes < 0) return false;
    packet = std::span(received_).first(static_cast<std::size_t>(bytes));
    return true;
  }
  if (received_at_ >= received_bytes_ && !receive_burst()) return false;
  const std::size_t bytes = std::min(received_each_, received_bytes_ - received_at_);
  packet = std::span(received_).subspan(received_at_, bytes);
  received_at_ += bytes;
  return true;
}

bool RawUdp::receive_burst() {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  iovec segment{received_.data(), received_.size()};
  msghdr message{};
  message.msg_iov = &segment;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = ::recvmsg(socket_, &message, 0);
  received_at_ = received_bytes_ = 0;
  if (bytes <= 0) return false;
  received_bytes_ = static_cast<std::size_t>(bytes);
  const std::size_t each = packet_bytes_in(message);
  received_each_ = each != 0 ? each : received_bytes_;
  return true;
}

}  // namespace perf
