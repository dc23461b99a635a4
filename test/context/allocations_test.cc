// The allocations of a message once a program has sent some like it: none, unless more than 2 KiB
// of it must be held at the receiver until its turn or its receive comes, or a one-sided operation
// is longer than a packet. Two ends of udp and tcp on loopback, in this process; every call of
// malloc() and its siblings (with operator new) in the process counts.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "pullman/pullman.h"

namespace {

bool counting = false;
long allocations = 0;

void count() {
  if (!counting) return;
  ++allocations;
}

}  // namespace

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) noexcept {
  count();
  return __libc_calloc(items, bytes);
}
void* realloc(void* old, std::size_t bytes) noexcept {
  count();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  count();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"

namespace pullman {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kLongest = 1 << 20;
constexpr std::uint64_t kKey = 77;
constexpr int kAtOnce = 4;  // messages under way at a time, so that some wait for others

Config config_of(const std::string& driver) {
  Config config;
  config.counters = "0";  // they are written ten times a second, which allocates
  config.driver = driver == "memory" ? "udp" : driver;
  config.shared_memory = driver == "memory";
  config.nics = {"lo"};
  config.max_peers = 4;
  config.packet_bytes = 1472;
  return config;
}

// One end sends to two others, of which one sends back.
class World {
 public:
  explicit World(const std::string& driver)
      : here(config_of(driver)), there(config_of(driver)), third(config_of(driver)) {
    to_there = here.connect(there.address());
    to_third = here.connect(third.address());
    peers = {to_there, to_third};
    until([&] { return (back = there.accept()).has_value(); });
    until([&] { return third.accept().has_value(); });
    REQUIRE(there.register_region(kKey, region, Access::kReadWrite) == Status::kOk);
  }

  void turn() {
    here.progress();
    there.progress();
    third.progress();
  }
  template <typename Condition>
  void until(Condition condition) {
    const auto end = steady_clock::now() + seconds(20);
    for (int i = 0; !condition(); ++i) {
      turn();
      if (i % 1024 == 1023 && steady_clock::now() > end) {
        counting = false;
        FAIL("it does not end: " << here.dump() << there.dump());
      }
    }
  }
  bool all_done() const {
    return std::all_of(sent.begin(), sent.end(), [](const Request& one) { return one.done(); }) &&
           std::all_of(received.begin(), received.end(),
                       [](const Request& one) { return one.done(); });
  }

  std::span<const std::byte> out(std::size_t bytes) const { return std::span(source).first(bytes); }
  std::span<std::byte> in(int which, std::size_t bytes) {
    return std::span(sink[static_cast<std::size_t>(which)]).first(bytes);
  }

  std::vector<std::byte> source = std::vector<std::byte>(kLongest, std::byte{3});
  std::array<std::vector<std::byte>, kAtOnce> sink = {
      std::vector<std::byte>(kLongest), std::vector<std::byte>(kLongest),
      std::vector<std::byte>(kLongest), std::vector<std::byte>(kLongest)};
  std::vector<std::byte> region = std::vector<std::byte>(kLongest);
  std::array<Request, kAtOnce> sent;
  std::array<Request, kAtOnce> received;
  MultiRequest multi;
  SharedBytes shared = std::make_shared<std::vector<std::byte>>(3000, std::byte{9});
  std::vector<std::byte> many_buffer = std::vector<std::byte>(4 * 3000);
  MultiReceive many{4};
  std::vector<PeerId> peers;
  Context here;
  Context there;
  Context third;
  PeerId to_there;
  PeerId to_third;
  std::optional<PeerId> back;
};

using Round = std::function<void(World&)>;

void post(World& world, std::size_t bytes, const ReceiveOptions& options = {}) {
  for (int i = 0; i < kAtOnce; ++i) {
    const auto at = static_cast<std::size_t>(i);
    world.there.receive(kAnyPeer, at, 0, world.in(i, bytes), options, world.received[at]);
  }
}

void send(World& world, std::size_t bytes, const SendOptions& options = {}) {
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    world.here.send(world.to_there, i, world.out(bytes), options, world.sent[i]);
  }
}

void wait(World& world) {
  world.until([&] { return world.all_done(); });
  for (const Request& one : world.sent) {
    if (one.status() != Status::kOk) std::abort();
  }
}

Round expected(std::size_t bytes, SendOptions options = {}, ReceiveOptions receive = {}) {
  return [=](World& world) {
    post(world, bytes, receive);
    send(world, bytes, options);
    wait(world);
  };
}

Round unexpected(std::size_t bytes) {
  return [=](World& world) {
    const auto before = world.there.stats().unexpected_messages;
    send(world, bytes);
    world.until([&] { return world.there.stats().unexpected_messages == before + kAtOnce; });
    post(world, bytes);
    wait(world);
  };
}

Round claimed(std::size_t bytes) {
  return [=](World& world) {
    send(world, bytes);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      std::optional<Probe> found;
      world.until([&] { return (found = world.there.claim(kAnyPeer, i, 0)).has_value(); });
      world.there.receive_claimed(found->claimed, world.in(static_cast<int>(i), bytes),
                                  world.received[i]);
    }
    wait(world);
  };
}

Round in_segments(std::size_t bytes) {
  return [=](World& world) {
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto to = world.in(static_cast<int>(i), bytes);
      const std::array<std::span<std::byte>, 3> into = {to.first(1), to.subspan(1, 90),
                                                        to.subspan(91)};
      world.there.receive(kAnyPeer, i, 0, into, {}, world.received[i]);
    }
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      const auto from = world.out(bytes);
      const std::array<std::span<const std::byte>, 3> segments = {
          from.first(50), from.subspan(50, 7), from.subspan(57)};
      world.here.send(world.to_there, i, segments, {}, world.sent[i]);
    }
    wait(world);
  };
}

Round packed(std::size_t bytes) {
  return [=](World& world) {
    post(world, bytes);
    const Packer packer{
        .pack = [](void*, std::uint64_t,
                   std::span<std::byte> to) { std::memset(to.data(), 5, to.size()); },
        .user = nullptr};
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      world.here.send(world.to_there, i, packer, bytes, {}, world.sent[i]);
    }
    wait(world);
  };
}

Round put(std::size_t bytes, PutOptions options = {}) {
  return [=](World& world) {
    for (Request& one : world.sent) {
      world.here.put(world.to_there, {kKey, 0}, world.out(bytes), options, one);
    }
    wait(world);
    if (!options.immediate) return;
    for (int i = 0; i < kAtOnce; ++i) {
      world.until([&] { return world.there.take_event().has_value(); });
    }
  };
}

Round get(std::size_t bytes) {
  return [=](World& world) {
    for (int i = 0; i < kAtOnce; ++i) {
      world.here.get(world.to_there, {kKey, 0}, world.in(i, bytes),
                     world.sent[static_cast<std::size_t>(i)]);
    }
    wait(world);
  };
}

Round atomic(std::size_t count, bool fetches) {
  return [=](World& world) {
    for (int i = 0; i < kAtOnce; ++i) {
      const Atomic what{.op = AtomicOp::kSum,
                        .type = AtomicType::kUint64,
                        .count = count,
                        .operand = world.out(8 * count),
                        .compare = {},
                        .result = fetches ? world.in(i, 8 * count) : std::span<std::byte>()};
      world.here.atomic(world.to_there, {kKey, 0}, what, world.sent[static_cast<std::size_t>(i)]);
    }
    wait(world);
  };
}

void to_two_peers(World& world) {
  world.there.receive(kAnyPeer, 1, 0, world.in(0, 3000), world.received[0]);
  world.third.receive(kAnyPeer, 1, 0, world.in(1, 3000), world.received[1]);
  world.here.send(world.peers, 1, world.shared, {}, world.multi);
  world.until([&] { return world.multi.done() && world.all_done(); });
}

void into_one_buffer(World& world) {
  world.there.receive(kAnyPeer, 0, ~Tag{0}, world.many_buffer, {}, world.many);
  send(world, 3000);
  int taken = 0;
  world.until([&] {
    while (world.many.take()) ++taken;
    return taken == kAtOnce && world.many.done() && world.all_done();
  });
}

void cancelled(World& world) {
  post(world, 100);
  for (Request& one : world.received) world.there.cancel(one);
}

void answered(World& world) {
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    world.there.receive(kAnyPeer, 1, 0, world.in(0, 64), world.received[0]);
    world.here.receive(kAnyPeer, 2, 0, world.in(1, 64), world.received[1]);
    world.here.send(world.to_there, 1, world.out(64), world.sent[0]);
    world.until([&] { return world.received[0].done(); });
    world.there.send(*world.back, 2, world.out(64), world.sent[1]);
    world.until([&] { return world.all_done(); });
  }
}

struct Case {
  const char* what;
  Round round;
  long allowed = 0;  // per message
};

// The queue of events grows in blocks.
constexpr long kEvents = 1;
// For the bytes that are held.
constexpr long kHeld = 1;
// For an answer longer than a packet, and for one with a copy of the region's bytes.
constexpr long kAnswer = 1;
constexpr long kCopiedAnswer = 2;
// For a request with a copy of its bytes.
constexpr long kCopiedQuestion = 2;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"empty", expected(0)},
      {"tiny", expected(8)},
      {"answered", answered},
      {"small", expected(1000)},
      {"a few packets", expected(5000)},
      {"eager", expected(60'000)},
      {"granted", expected(300'000)},
      {"long", expected(kLongest)},
      {"synchronous", expected(100, {.synchronous = true, .immediate = {}})},
      {"until delivered", expected(100, {.until_delivered = true, .immediate = {}})},
      {"with priority", expected(5000, {.priority = true, .immediate = {}}), kHeld},
      {"with immediate data", expected(100, {.immediate = 5})},
      {"copied", expected(1000, {.only_copy = true, .immediate = {}})},
      {"of another space", expected(1000, {.space = 3, .immediate = {}}, {.space = 3})},
      {"unexpected, tiny", unexpected(8)},
      {"unexpected, small", unexpected(1000)},
      {"unexpected, of a few packets", unexpected(5000), kHeld},
      {"unexpected, granted", unexpected(300'000), kHeld},
      {"claimed", claimed(1000)},
      {"in segments, small", in_segments(1000)},
      {"in segments, long", in_segments(100'000)},
      {"packed", packed(100'000)},
      {"put, small", put(100)},
      {"put, long", put(300'000), kHeld},
      {"put with an event", put(100, {.immediate = 4}), kEvents},
      {"get, small", get(100)},
      {"get, long", get(300'000), kAnswer},
      {"atomic", atomic(1, false)},
      {"atomic that fetches", atomic(1, true)},
      {"atomic of many elements", atomic(200, true), kCopiedQuestion + kCopiedAnswer},
      {"to two peers", to_two_peers},
      {"many into one buffer", into_one_buffer},
      {"receives that are cancelled", cancelled},
  };
  return all;
}

TEST_CASE("a message allocates nothing after some of its kind, unless it must be held") {
  const std::string driver = GENERATE("udp", "tcp", "memory");
  constexpr int kWarmUp = 300;
  constexpr int kRounds = 100;
  // Pools grow to the most packets in use at any time, which a busy machine reaches late. They are
  // bounded, but allocations of each message show in every series.
  constexpr int kSeries = 8;
  World world(driver);
  // Runs all kinds in turns, several times: one kind may use what another gave back.
  for (int i = 0; i < kWarmUp / 10; ++i) {
    for (const Case& one : cases()) {
      INFO(driver << ", " << one.what);
      one.round(world);
    }
  }
  for (const Case& one : cases()) {
    INFO(driver << ", " << one.what);
    const long allowed = one.allowed * kAtOnce * kRounds;
    for (int i = 0; i < kWarmUp; ++i) one.round(world);
    long least = std::numeric_limits<long>::max();
    for (int series = 0; series < kSeries && least > allowed; ++series) {
      allocations = 0;
      counting = true;
      for (int i = 0; i < kRounds; ++i) one.round(world);
      counting = false;
      least = std::min(least, allocations);
    }
    INFO(driver << ", " << one.what << ": " << least << " in " << kRounds << " rounds");
    CHECK(least <= allowed);
  }
}

}  // namespace
}  // namespace pullman
