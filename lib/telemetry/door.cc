#include "telemetry/door.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "shm/owned_file.h"

namespace pullman::telemetry {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path) {
  throw shm::MemoryError(
      fmt::format("{}: {}", path.string(), std::generic_category().message(errno)));
}

// A path that is too long for a socket's address is named by its folder's descriptor.
class SocketAddress {
 public:
  explicit SocketAddress(const fs::path& path) {
    address_.sun_family = AF_UNIX;
    std::string name = path.string();
    if (name.size() >= sizeof address_.sun_path) {
      folder_ = Descriptor(open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      name = fmt::format("/proc/self/fd/{}/{}", folder_.get(), path.filename().string());
    }
    if (name.size() >= sizeof address_.sun_path) {
      errno = ENAMETOOLONG;
      fail(path);
    }
    std::copy(name.begin(), name.end(), address_.sun_path);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kBytes = sizeof(sockaddr_un);

 private:
  sockaddr_un address_{};
  Descriptor folder_;
};

Descriptor make_socket() {
  return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// The socket's mode is what keeps others out; this is the same once more.
bool is_ours(int socket) {
  ucred other{};
  socklen_t length = sizeof other;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 &&
         (other.uid == geteuid() || other.uid == 0);
}

constexpr std::uint32_t kListening = 0xFFFFFFFF;

// Of visitors that come it is told once.
bool watch(int all, int descriptor, std::uint32_t which, int how = EPOLL_CTL_ADD) {
  epoll_event event{};
  event.events = which == kListening ? EPOLLIN | EPOLLET : EPOLLIN;
  event.data.u32 = which;
  return epoll_ctl(all, how, descriptor, &event) == 0;
}

bool send_packet(int socket, std::span<const std::byte> bytes) {
  ssize_t sent = -1;
  do {
    sent = send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

// Returns nothing if there is nothing, and sets `over` if nothing will come. What is longer than
// may be said is not said.
std::optional<std::vector<std::byte>> receive_packet(int socket, bool& over) {
  std::vector<std::byte> bytes(kMaxDoorBytes);
  const ssize_t got = recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
  over = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (got <= 0 || static_cast<std::size_t>(got) > kMaxDoorBytes) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  Descriptor taken(std::move(other));
  std::swap(number_, taken.number_);
  return *this;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

// The folder is only for this user, so nobody comes in before the mode is set.
Door::Door(fs::path path) : path_(std::move(path)), listening_(make_socket()) {
  const SocketAddress address(path_);
  if (!listening_ || bind(listening_.get(), address.get(), SocketAddress::kBytes) != 0) fail(path_);
  watched_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (chmod(path_.c_str(), S_IRUSR | S_IWUSR) == 0 && watched_ &&
      listen(listening_.get(), kMaxVisitors) == 0 &&
      watch(watched_.get(), listening_.get(), kListening)) {
    return;
  }
  const int error = errno;
  unlink(path_.c_str());
  errno = error;
  fail(path_);
}

Door::~Door() {
  unlink(path_.c_str());
}

std::optional<Door::Question> Door::next() {
  std::array<epoll_event, kMaxVisitors + 1> events{};
  const int ready = epoll_wait(watched_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < ready; ++i) {
    const std::uint32_t which = events[static_cast<std::size_t>(i)].data.u32;
    if (which == kListening) {
      let_all_in();
    } else if (auto question = hear(seats_.at(which))) {
      return question;
    }
  }
  return std::nullopt;
}

// Where none can be let in, since this process may open no more files, they wait until another one
// comes, and nobody is woken for them again and again.
void Door::let_all_in() {
  for (std::size_t i = 0; i < 2 * kMaxVisitors; ++i) {
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    let_in(std::move(socket));
  }
  watch(watched_.get(), listening_.get(), kListening, EPOLL_CTL_MOD);  // tells of those left
}

// Those for whom there is no seat are sent away.
void Door::let_in(Descriptor socket) {
  if (!is_ours(socket.get())) return;
  const auto seat =
      std::find_if(seats_.begin(), seats_.end(), [](const Seat& one) { return !one.socket; });
  const auto which = static_cast<std::uint32_t>(seat - seats_.begin());
  if (seat == seats_.end() || !watch(watched_.get(), socket.get(), which)) return;
  seat->socket = std::move(socket);
  seat->visitor = ++last_;
}

std::optional<Door::Question> Door::hear(Seat& seat) {
  bool over = false;
  auto bytes = receive_packet(seat.socket.get(), over);
  if (over) {
    // Closing does not do that while a child of fork() has the socket, too.
    epoll_ctl(watched_.get(), EPOLL_CTL_DEL, seat.socket.get(), nullptr);
    seat.socket = Descriptor();
  }
  if (!bytes) return std::nullopt;
  return Question{seat.visitor, std::move(*bytes)};
}

bool Door::answer(Visitor visitor, std::span<const std::byte> bytes) {
  const auto seat = std::find_if(seats_.begin(), seats_.end(), [visitor](const Seat& one) {
    return one.socket && one.visitor == visitor;
  });
  return seat != seats_.end() && send_packet(seat->socket.get(), bytes);
}

Knocker::Knocker(const fs::path& door) : socket_(make_socket()) {
  const SocketAddress address(door);
  if (!socket_ || connect(socket_.get(), address.get(), SocketAddress::kBytes) != 0) fail(door);
}

bool Knocker::ask(std::span<const std::byte> bytes) {
  return send_packet(socket_.get(), bytes);
}

std::optional<std::vector<std::byte>> Knocker::hear(std::chrono::milliseconds patience) {
  pollfd socket{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (poll(&socket, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  return receive_packet(socket_.get(), over_);
}

std::vector<fs::path> doors_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != kDoorExtension) continue;
    const auto owner = shm::owner_of(entry.path().filename().string());
    if (owner && !shm::has_ended(*owner)) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace pullman::telemetry
