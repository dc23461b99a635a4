// The effect of a context's options on its NIC: two contexts on the loopback, driven in turn.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "nic/address.h"
#include "nic/drivers.h"
#include "nic/udp/errors.h"
#include "pullman/pullman.h"

namespace pullman {
namespace {

constexpr Tag kTag = 1;

Config on_loopback() {
  Config config;
  config.driver = "udp";
  config.nics = {"127.0.0.1"};
  config.shared_memory = false;
  return config;
}

// Two connected contexts, of which the first has sent the other that many bytes.
struct Two {
  explicit Two(const Config& config, std::size_t bytes) : here(config), there(config) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const PeerId peer = here.connect(there.address());
    Request receiving, sending;
    there.receive(kAnyPeer, kTag, 0, in, receiving);
    here.send(peer, kTag, out, sending);
    while (!sending.done() || !receiving.done()) {
      here.progress();
      there.progress();
    }
    REQUIRE(receiving.length() == bytes);
  }
  ~Two() {
    there.close(std::chrono::seconds(0));
    here.close(std::chrono::seconds(0));
  }

  Context here;
  Context there;
};

// Finds this process's socket that is bound to the context's port, for the kernel's view of it.
int socket_of(const Context& context) {
  std::string why;
  const auto wanted = nic::parse(context.address(), 0, why);
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    auto* generic = reinterpret_cast<sockaddr*>(&name);
    if (getsockname(fd, generic, &length) == 0 && nic::from_sockaddr(generic, length) == wanted) {
      return fd;
    }
  }
  return -1;
}

int socket_option(const Context& context, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  getsockopt(socket_of(context), SOL_SOCKET, option, &value, &length);
  return value;
}

nic::Device device_of(const char* provider, bool up) {
  nic::Device device;
  device.provider = provider;
  device.up = up;
  return device;
}

TEST_CASE("packet_bytes: shorter packets mean more of them") {
  Config config = on_loopback();
  CHECK(Two(config, 60'000).here.stats().packets_sent < 20);
  config.packet_bytes = 1000;
  CHECK(Two(config, 60'000).here.stats().packets_sent > 60);
}

TEST_CASE("receive_buffer_bytes: the kernel grants each socket exactly that") {
  Config config = on_loopback();
  config.receive_buffer_bytes = 100'000;
  const Context context(config);
  // The kernel doubles the value for its own overhead.
  CHECK(socket_option(context, SO_RCVBUF) == 200'000);
  CHECK(socket_option(Context(on_loopback()), SO_RCVBUF) > 200'000);
}

TEST_CASE("busy_poll: the kernel polls for that long; without the option its default stays") {
  const int usual = socket_option(Context(on_loopback()), SO_BUSY_POLL);
  Config config = on_loopback();
  config.busy_poll = std::chrono::microseconds(usual + 50);
  const int now = socket_option(Context(config), SO_BUSY_POLL);
  // A value above the system's needs a privilege.
  CHECK(now == (geteuid() == 0 ? usual + 50 : now));
}

TEST_CASE("offloads: with it bursts leave and arrive, without it single packets") {
  Config config = on_loopback();
  config.packet_bytes = 1000;
  {
    const Two two(config, 1'000'000);
    CHECK(two.here.stats().nic_bursts_sent > 0);
    CHECK(two.there.stats().nic_bursts_received > 0);
    CHECK(two.here.stats().nic_bursts_refused == 0);
  }
  config.offloads = false;
  const Two two(config, 1'000'000);
  CHECK(two.here.stats().nic_bursts_sent == 0);
  CHECK(two.there.stats().nic_bursts_received == 0);
}

TEST_CASE("driver: a name means that driver, a provider means fabric") {
  CHECK(nic::driver_for("udp", "verbs") == "udp");
  CHECK(nic::driver_for("fabric", "") == "fabric");
  CHECK(nic::driver_for("auto", "udp") == "fabric");
  CHECK(nic::driver_for("nonesuch", "") == "nonesuch");  // refused by make_driver()
  CHECK_THROWS_AS(nic::make_driver("nonesuch", ""), nic::NicError);
}

TEST_CASE("driver: auto is fabric if a NIC that bypasses the kernel is up, else udp") {
  CHECK(nic::best_driver({}) == "udp");
  CHECK(nic::best_driver({device_of("udp", true), device_of("tcp", true)}) == "udp");
  for (const char* provider : {"usnic", "verbs", "verbs;ofi_rxd", "efa"}) {
    CHECK(nic::best_driver({device_of("udp", true), device_of(provider, true)}) == "fabric");
    CHECK(nic::best_driver({device_of("udp", true), device_of(provider, false)}) == "udp");
  }
}

TEST_CASE("driver: a context tells which one was chosen") {
  Config config = on_loopback();
  CHECK(Context(config).driver() == "udp");
  config.driver = "tcp";
  CHECK(Context(config).driver() == "tcp");
  config.driver = "fabric";
  CHECK(Context(config).driver() == "fabric");
  config.driver = "auto";
  CHECK(Context(config).driver() == nic::driver_for("auto", ""));
}

TEST_CASE("each error of a send call has its meaning") {
  using nic::udp::Trouble;
  CHECK(nic::udp::trouble_of(EAGAIN, false) == Trouble::kFull);
  for (const int error : {ENOBUFS, ENOMEM}) {
    CHECK(nic::udp::trouble_of(error, true) == Trouble::kRefused);
    CHECK(nic::udp::trouble_of(error, false) == Trouble::kRefused);
  }
  CHECK(nic::udp::trouble_of(EMSGSIZE, false) == Trouble::kTooLong);
  CHECK(nic::udp::trouble_of(EPERM, true) == Trouble::kForbidden);
  CHECK(nic::udp::trouble_of(ENETDOWN, false) == Trouble::kUndelivered);
  for (const int error : {ENODEV, ENETUNREACH}) {
    CHECK(nic::udp::trouble_of(error, false) == Trouble::kNoWay);
  }
  CHECK(nic::udp::trouble_of(EBADF, false) == Trouble::kBroken);
}

TEST_CASE("an error of a burst is not an error of its packets") {
  using nic::udp::Trouble;
  // EIO: no checksum offload (before Linux 6.11), or IPsec.
  for (const int error : {EIO, EINVAL}) {
    CHECK(nic::udp::trouble_of(error, true) == Trouble::kNoOffload);
    CHECK(nic::udp::trouble_of(error, false) == Trouble::kUndelivered);
  }
  // They come from an ICMP message about an earlier packet, and do not concern bursts.
  for (const int error : {ECONNREFUSED, EHOSTUNREACH, ENOPROTOOPT, EOPNOTSUPP, EPROTO, EACCES}) {
    CHECK(nic::udp::trouble_of(error, true) == Trouble::kUndelivered);
  }
}

// --- the wait descriptor

bool readable(const Context& context) {
  pollfd watched{context.wait_fd(), POLLIN, 0};
  return poll(&watched, 1, 0) == 1;
}

void settle(Context& context) {
  while (!context.prepare_wait()) {
  }
}

// Waits until everything is acked, so that no short timer is left.
void settle(Context& here, Context& there) {
  while (here.stats().packets_in_flight + there.stats().packets_in_flight > 0) {
    here.progress();
    there.progress();
  }
  settle(here);
  settle(there);
}
void settle(Two& two) {
  settle(two.here, two.there);
}

TEST_CASE("the wait descriptor is readable from when a message comes until it is taken") {
  for (const char* driver : {"udp", "tcp", "fabric"}) {
    Config config = on_loopback();
    config.driver = driver;
    if (config.driver == "fabric") config.provider = "udp";
    Two two(config, 8);
    REQUIRE(two.there.wait_fd() >= 0);
    settle(two);
    CHECK_FALSE(readable(two.there));

    const PeerId peer = two.here.connect(two.there.address());
    Request sending;
    REQUIRE(two.here.send(peer, kTag, {}, sending) == Status::kOk);

    CHECK(readable(two.there));
    settle(two);
    CHECK_FALSE(readable(two.there));
    CHECK(two.there.probe(kAnyPeer, kTag, 0).has_value());
  }
}

TEST_CASE("an address of a family that no NIC has is refused at once") {
  Context context(on_loopback());
  const auto why = [&](const char* address) -> std::pair<Status, std::string> {
    try {
      context.connect(address);
    } catch (const Error& error) {
      return {error.status(), error.what()};
    }
    return {};
  };

  const auto [status, sentence] = why("[::1]:7100");
  CHECK(status == Status::kUnreachable);
  CHECK_THAT(sentence, Catch::Contains("no way to [::1]:7100"));
  CHECK(why("127.0.0.1:7100").first == Status::kOk);
  context.close(std::chrono::seconds(0));
}

TEST_CASE("the wait descriptor is readable when a timer is due") {
  Context context(on_loopback());
  settle(context);
  CHECK_FALSE(readable(context));

  // This socket takes packets and answers none, so the HELLO must be repeated.
  const int deaf = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  auto* generic = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(bind(deaf, generic, length) == 0);
  REQUIRE(getsockname(deaf, generic, &length) == 0);
  context.connect("127.0.0.1:" + std::to_string(ntohs(name.sin_port)));
  settle(context);

  pollfd watched{context.wait_fd(), POLLIN, 0};
  CHECK(poll(&watched, 1, 60'000) == 1);
  const auto datagrams_held = [&] {
    std::byte byte;
    int count = 0;
    while (recv(deaf, &byte, 1, MSG_DONTWAIT) >= 0) ++count;
    return count;
  };
  CHECK(datagrams_held() >= 1);
  settle(context);
  CHECK(datagrams_held() >= 1);
  context.close(std::chrono::seconds(0));
  close(deaf);
}

// How many epoll sets of this process a descriptor is in (proc(5), fdinfo).
int watchers_of(int fd) {
  int count = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(one.path());
    for (std::string key, number; file >> key;) {
      if (key == "tfd:" && file >> number && number == std::to_string(fd)) ++count;
    }
  }
  return count;
}

TEST_CASE("a sleeper is also woken by a socket that was opened after it got the descriptor") {
  Context here(on_loopback()), there(on_loopback());
  pollfd watched{here.wait_fd(), POLLIN, 0};
  const PeerId away = here.connect(there.address());
  for (int i = 0; i < 200; ++i) {  // so that the peer becomes the connected one
    here.wait_fd();                // a sleeper may watch all the while
    Request sending, receiving;
    there.receive(kAnyPeer, kTag, 0, {}, receiving);
    here.send(away, kTag, {}, sending);
    while (!sending.done() || !receiving.done()) {
      here.progress();
      there.progress();
    }
  }
  const PeerId back = there.connect(here.address());
  settle(here, there);
  CHECK(poll(&watched, 1, 0) == 0);

  Request sending;
  REQUIRE(there.send(back, kTag, {}, sending) == Status::kOk);

  CHECK(poll(&watched, 1, 0) == 1);
  settle(here, there);
  there.close(std::chrono::seconds(0));
  here.close(std::chrono::seconds(0));
}

TEST_CASE("a program that has polled for long is still woken when it sleeps again") {
  Two two(on_loopback(), 8);
  pollfd watched{two.here.wait_fd(), POLLIN, 0};
  settle(two);
  const PeerId there = two.here.connect(two.there.address());
  const PeerId here = two.there.connect(two.here.address());
  for (int i = 0; i < 200; ++i) {  // so that the peer becomes the connected one
    Request sending, receiving;
    two.there.receive(here, kTag, 0, {}, receiving);
    two.here.send(there, kTag, {}, sending);
    while (!sending.done() || !receiving.done()) {
      two.here.progress();
      two.there.progress();
    }
  }
  const int socket = socket_of(two.here);
  CHECK(watchers_of(socket) == 1);
  for (int i = 0; i < 3000; ++i) two.here.progress();
  CHECK(watchers_of(socket) == 0);
  settle(two);
  CHECK(poll(&watched, 1, 0) == 0);

  Request sending;
  REQUIRE(two.there.send(here, kTag, {}, sending) == Status::kOk);

  CHECK(poll(&watched, 1, 0) == 1);
  settle(two);
}

TEST_CASE("packets that can leave at once leave before a program sleeps") {
  const std::vector<std::byte> bytes(100'000);
  Request sending;
  Two two(on_loopback(), 8);
  settle(two);
  REQUIRE(two.here.send(two.here.connect(two.there.address()), kTag, bytes, sending) ==
          Status::kPending);

  settle(two.here);  // which sends the packets

  CHECK(readable(two.there));
}

TEST_CASE("a wait that sleeps keeps its timeout, and so does a close") {
  Config config = on_loopback();
  config.sleep_after = std::chrono::microseconds(1);
  Context context(config);
  std::vector<std::byte> buffer(8);
  Request receiving;
  context.receive(kAnyPeer, kTag, 0, buffer, receiving);

  const auto began = std::chrono::steady_clock::now();
  CHECK(context.wait(receiving, std::chrono::milliseconds(30)) == Status::kTimedOut);
  CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(30));

  CHECK(context.wait(receiving, std::chrono::nanoseconds(0)) == Status::kTimedOut);
  CHECK(context.close() == Status::kOk);
  CHECK(receiving.status() == Status::kClosed);
}

}  // namespace
}  // namespace pullman
