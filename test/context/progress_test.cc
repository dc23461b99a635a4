// Contexts whose packets a thread of the library moves while the program does something else.
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "context/exchange.h"

namespace pullman::test {
namespace {

using std::chrono::milliseconds;

Config with_thread() {
  Config config = config_of("udp");
  config.progress = Config::Progress::kThread;
  config.max_peers = 64;
  return config;
}

// Does something else until a request is done, and makes no call.
template <typename... Requests>
bool compute_until_done(const Requests&... requests) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!(requests.done() && ...)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto micros = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

}  // namespace

TEST_CASE("a long message arrives while both programs compute", "[progress]") {
  constexpr std::size_t kBytes = 16 << 20;
  Context one(with_thread());
  Context other(with_thread());
  const auto bytes = content(1, kBytes);
  std::vector<std::byte> buffer(kBytes);
  Request received;
  Request sent;
  other.receive(kAnyPeer, 1, 0, buffer, received);
  one.send(one.connect(other.address()), 1, bytes, sent);

  CHECK(compute_until_done(sent, received));

  CHECK(sent.status() == Status::kOk);
  CHECK(received.status() == Status::kOk);
  CHECK(buffer == bytes);
}

TEST_CASE("messages arrive while nobody calls, and while programs wait", "[progress]") {
  Context one(with_thread());
  Context other(with_thread());
  const PeerId there = one.connect(other.address());
  for (Tag tag = 0; tag < 200; ++tag) {
    std::vector<std::byte> buffer(100);
    const auto bytes = content(tag, 100);
    Request received;
    Request sent;
    other.receive(kAnyPeer, tag, 0, buffer, received);
    one.send(there, tag, bytes, sent);
    if (tag % 2 == 0) {
      CHECK(compute_until_done(sent, received));
    } else {
      CHECK(other.wait(received, kLongest) == Status::kOk);
      CHECK(one.wait(sent, kLongest) == Status::kOk);
    }
    CHECK(buffer == bytes);
  }
}

TEST_CASE("an idle context with a thread uses hardly any processor", "[progress]") {
  Context one(with_thread());
  Context other(with_thread());
  std::byte byte{};
  Request received;
  Request sent;
  other.receive(kAnyPeer, 1, 0, {&byte, 1}, received);
  one.send(one.connect(other.address()), 1, {&byte, 1}, sent);
  REQUIRE(compute_until_done(sent, received));
  std::this_thread::sleep_for(milliseconds(200));
  const auto before = processor_time();
  std::this_thread::sleep_for(milliseconds(500));
  const auto used = processor_time() - before;
  INFO(used.count() << " us of 500 ms");
  CHECK(used < milliseconds(25));
}

TEST_CASE("a context with a thread has no descriptor to wait on, and closes as others do",
          "[progress]") {
  Context one(with_thread());
  Context other(with_thread());
  std::byte byte{};
  Request sent;
  one.send(one.connect(other.address()), 1, {&byte, 1}, sent);
  CHECK(one.wait_fd() == -1);
  CHECK_FALSE(one.prepare_wait());
  CHECK(one.close(kLongest) == Status::kOk);
  CHECK(one.close() == Status::kOk);
}

}  // namespace pullman::test
