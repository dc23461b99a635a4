#include "sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace peers {

namespace {

using perf::Failure;

constexpr std::size_t kStagedBytes = 256 * 1024;  // larger gave no more in a stream
constexpr std::size_t kBatchBytes = 64 * 1024;

[[noreturn]] void fail(const char* what) {
  throw Failure(fmt::format("{}: {}", what, std::strerror(errno)));
}

// The server's end: says where it listens and waits for one connection.
int accept_one(const Meeting& meeting) {
  const int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  const bool listens =
      listener >= 0 &&
      ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener, 1) == 0 &&
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (!listens) fail("cannot listen");
  meeting.control.say({{"port", ntohs(address.sin6_port)}});
  pollfd wait{listener, POLLIN, 0};
  const int patience_ms = static_cast<int>(meeting.options.patience_s * 1000);
  const int socket =
      ::poll(&wait, 1, patience_ms) > 0 ? ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
  ::close(listener);
  if (socket < 0) throw Failure("the client does not connect");
  return socket;
}

// The client's end.
int connect_to(const Meeting& meeting) {
  const std::string port = std::to_string(meeting.control.hear().value("port", std::uint16_t{0}));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(meeting.options.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) throw Failure(gai_strerror(error));
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = socket >= 0 && ::connect(socket, found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!connected) fail("cannot connect");
  return socket;
}

}  // namespace

Sockets::Sockets(const Meeting& meeting, Batching batching, Idle idle)
    : socket_(meeting.server() ? accept_one(meeting) : connect_to(meeting)),
      batching_(batching),
      idle_(idle),
      out_(sizeof(Header) + meeting.job.size),
      in_(meeting.job.size),
      staged_(kStagedBytes) {
  const int on = 1;
  (void)::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  batch_.reserve(kBatchBytes);
}

Sockets::~Sockets() {
  ::close(socket_);
}

bool Sockets::send(std::size_t bytes) {
  if (unsent_ != 0) push();
  if (unsent_ != 0) return false;
  begun_ = sizeof(Header) + bytes;
  const Header header{bytes, 0};
  std::memcpy(out_.data(), &header, sizeof header);
  if (batching_ == Batching::kNone || begun_ > kBatchBytes) {
    if (!push_batch()) return false;
    unsent_ = begun_;
    push();
    return true;
  }
  if (batch_.size() + begun_ > kBatchBytes && !push_batch()) return false;
  batch_.insert(batch_.end(), out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(begun_));
  return true;
}

void Sockets::flush() {
  (void)push_batch();
}

void Sockets::push() {
  const std::byte* rest = out_.data() + (begun_ - unsent_);
  const ssize_t count = ::send(socket_, rest, unsent_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) fail("cannot send");
  if (count > 0) unsent_ -= static_cast<std::size_t>(count);
}

bool Sockets::push_batch() {
  if (batch_.empty()) return true;
  const ssize_t count = ::send(socket_, batch_.data(), batch_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) fail("cannot send");
  if (count > 0) batch_.erase(batch_.begin(), batch_.begin() + count);
  return batch_.empty();
}

void Sockets::progress() {
  unsent_ != 0 ? push() : flush();
  std::array<iovec, 2> places{};
  places[0] = {in_.data() + (in_.size() - std::min(missing_, in_.size())), missing_};
  places[1] = {staged_.data(), staged_.size()};
  msghdr message{};
  message.msg_iov = missing_ == 0 ? &places[1] : places.data();
  message.msg_iovlen = missing_ == 0 ? 1 : 2;
  const ssize_t count = ::recvmsg(socket_, &message, MSG_DONTWAIT);
  if (count == 0) throw Failure("the other end closed the connection");
  if (count > 0) return take(static_cast<std::size_t>(count));
  if (errno != EAGAIN && errno != EINTR) fail("cannot receive");
  if (idle_ == Idle::kSleeps) sleep();
}

// The sleep is short, since the caller looks at the clock between two of them.
void Sockets::sleep() const {
  constexpr int kLongestMs = 10;
  const short writable = idle() ? 0 : POLLOUT;
  pollfd watched{socket_, static_cast<short>(POLLIN | writable), 0};
  (void)::poll(&watched, 1, kLongestMs);
}

void Sockets::take(std::size_t bytes) {
  const std::size_t placed = std::min(bytes, missing_);
  if (placed != 0 && placed == missing_) ++received_;
  missing_ -= placed;
  take_staged(staged_.data(), bytes - placed);
}

void Sockets::take_staged(const std::byte* data, std::size_t bytes) {
  const std::byte* const end = data + bytes;
  while (data != end) {
    const auto left = static_cast<std::size_t>(end - data);
    if (missing_ != 0) {
      const std::size_t part = std::min(left, missing_);
      std::memcpy(in_.data() + (in_.size() - missing_), data, part);
      data += part;
      missing_ -= part;
      if (missing_ == 0) ++received_;
      continue;
    }
    const std::size_t part = std::min(left, head_.size() - head_bytes_);
    std::memcpy(head_.data() + head_bytes_, data, part);
    data += part;
    head_bytes_ += part;
    if (head_bytes_ < head_.size()) continue;
    Header header;
    std::memcpy(&header, head_.data(), sizeof header);
    take_header(header);
  }
}

void Sockets::take_header(const Header& header) {
  if (header.length > in_.size()) throw Failure("the other end sends more than was agreed");
  head_bytes_ = 0;
  missing_ = header.length;
  if (missing_ == 0) ++received_;
}

}  // namespace peers
