#include "raw_control.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

namespace perf {

namespace {

constexpr std::size_t kMaxBytes = 64 * 1024;  // of one line

[[noreturn]] void fail(const std::string& what) {
  throw Failure(fmt::format("{}: {}", what, std::strerror(errno)));
}

bool readable(int socket, double seconds) {
  pollfd wait{socket, POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(seconds * 1000)) > 0;
}

void set(int socket, int level, int option) {
  const int on = 1;
  (void)::setsockopt(socket, level, option, &on, sizeof on);
}

// How long connect() and send() may take. The kernel's own patience is minutes.
void set_patience(int socket, double seconds) {
  timeval bound{};
  bound.tv_sec = static_cast<time_t>(seconds);
  bound.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
}

}  // namespace

RawControl RawControl::accept(const Options& options) {
  const int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("cannot make a socket");
  set(listener, SOL_SOCKET, SO_REUSEADDR);
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(options.port);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 ||
      ::listen(listener, 1) != 0) {
    ::close(listener);
    fail(fmt::format("cannot listen at port {}", options.port));
  }
  fmt::print(stderr, "serving one client at port {}, bare datagrams\n", options.port);
  const int socket =
      readable(listener, options.patience_s) ? ::accept(listener, nullptr, nullptr) : -1;
  ::close(listener);
  if (socket < 0) {
    throw Failure(fmt::format("the client: nothing was heard for {} s", options.patience_s));
  }
  return RawControl(socket, options);
}

RawControl RawControl::connect(const Options& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(options.port);
  const int error = ::getaddrinfo(options.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) throw Failure(fmt::format("no host '{}': {}", options.host, gai_strerror(error)));
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_patience(socket, options.patience_s);
  const int result = socket < 0 ? -1 : ::connect(socket, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  if (result != 0) {
    const int why = errno;
    if (socket >= 0) ::close(socket);
    errno = why == EINPROGRESS ? ETIMEDOUT : why;
    fail(fmt::format("cannot reach a pullman-perf --raw at {} port {}", options.host, port));
  }
  return RawControl(socket, options);
}

RawControl::RawControl(int socket, const Options& options) : socket_(socket), options_(options) {
  set(socket, IPPROTO_TCP, TCP_NODELAY);
}

RawControl::RawControl(RawControl&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      options_(other.options_),
      received_(std::move(other.received_)) {}

RawControl::~RawControl() {
  if (socket_ >= 0) ::close(socket_);
}

void RawControl::say(const nlohmann::json& line) {
  const std::string text = line.dump() + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::send(socket_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (count < 0) fail("the other end is gone");
    done += static_cast<std::size_t>(count);
  }
}

nlohmann::json RawControl::hear() {
  for (;;) {
    if (auto line = take_line()) return *line;
    if (!readable(socket_, options_.patience_s)) {
      throw Failure(fmt::format("the other end: nothing was heard for {} s", options_.patience_s));
    }
    read_some(0);
  }
}

std::optional<nlohmann::json> RawControl::poll() {
  auto line = take_line();
  if (line || !read_some(MSG_DONTWAIT)) return line;
  return take_line();
}

bool RawControl::read_some(int flags) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), flags);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (count < 0) fail("the other end is gone");
  if (count == 0) throw Failure("the other end closed the connection");
  received_.append(buffer.data(), static_cast<std::size_t>(count));
  if (received_.size() > kMaxBytes) throw Failure("the other end talks nonsense");
  return true;
}

std::optional<nlohmann::json> RawControl::take_line() {
  const std::size_t end = received_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  nlohmann::json line = nlohmann::json::parse(received_.substr(0, end), nullptr, false);
  received_.erase(0, end + 1);
  if (!line.is_object()) throw Failure("the other end talks nonsense");
  return line;
}

std::string RawControl::local_host() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  (void)::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length);
  (void)::getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                      nullptr, 0, NI_NUMERICHOST);
  const std::string text = host.data();
  // The listener takes both families: an IPv4 client appears as ::ffff:10.0.0.1.
  return text.rfind("::ffff:", 0) == 0 ? text.substr(7) : text;
}

}  // namespace perf
