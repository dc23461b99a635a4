// Calls without memory: a call that throws std::bad_alloc has changed nothing and works when it is
// called again. Each call is made with a number of allocations granted, from none on until they
// suffice; the engine's own tables exist before.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "sim/operations.h"

namespace {

long granted = -1;  // allocations; below 0: any number
bool refused = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (granted == 0) {
    refused = true;
    throw std::bad_alloc();
  }
  if (granted > 0) --granted;
  const std::size_t whole = (bytes + alignment) / alignment * alignment;  // not 0
  void* const found = std::aligned_alloc(alignment, whole);
  if (found == nullptr) throw std::bad_alloc();
  return found;
}

}  // namespace

// Not inlined: the compilers would see only one half of a pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* bytes) noexcept {
  std::free(bytes);
}
[[gnu::noinline]] void operator delete(void* bytes, std::size_t) noexcept {
  std::free(bytes);
}
[[gnu::noinline]] void operator delete(void* bytes, std::align_val_t) noexcept {
  std::free(bytes);
}
[[gnu::noinline]] void operator delete(void* bytes, std::size_t, std::align_val_t) noexcept {
  std::free(bytes);
}

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kKey = 0xABCD;
constexpr std::uint64_t kPlace = 8;
constexpr std::size_t kBytes = 2000;

// Host 0 calls. Hosts 1 and 2 have a region each, of equal bytes.
struct Places {
  Places() {
    for (const std::size_t other : {1, 2}) {
      REQUIRE(scene.engine(other).remote_memory().add_region(kKey, memory[other - 1],
                                                             Access::kReadWrite));
    }
    there = scene.couple(0, 1).there;
  }
  engine::Engine& engine() { return scene.engine(0); }
  Instant now() { return scene.node(0).local_now(); }
  void wait() {
    REQUIRE(scene.run_until([&] { return request->done(); }));
    CHECK(request->status() == Status::kOk);
  }

  void clean() {
    for (auto& each : memory) std::copy(initial.begin(), initial.end(), each.begin());
  }

  const std::vector<std::byte> initial = bytes_of(10'000, 3);
  std::array<std::vector<std::byte>, 2> memory{initial, initial};
  std::vector<std::byte> bytes = bytes_of(kBytes, 5);
  std::vector<std::byte> buffer = std::vector<std::byte>(kBytes);
  std::array<std::span<const std::byte>, 2> from{std::span(bytes).first(700),
                                                 std::span(bytes).subspan(700)};
  std::array<std::span<std::byte>, 2> to{std::span(buffer).first(700),
                                         std::span(buffer).subspan(700)};
  std::unique_ptr<Request> request = std::make_unique<Request>();
  Scene scene{3};
  PeerId there;
  std::size_t host = 1;  // the one that `there` names
};

struct Case {
  const char* what;
  Status (*call)(Places&, Request&);
  void (*end)(Places&);  // finishes the call's operation and checks its effect
};

const Case kCases[] = {
    {"a send from two places",
     [](Places& places, Request& request) {
       return places.engine().sending().submit(
           places.now(),
           {.peer = places.there, .tag = 1, .segments = places.from, .options = SendOptions{}},
           request);
     },
     [](Places& places) {
       Act& receive = places.scene.receive(places.host, kAnyPeer, 1, kBytes);
       REQUIRE(places.scene.run_until_done(receive));
       CHECK(receive.bytes == places.bytes);
     }},
    {"a receive into two places",
     [](Places& places, Request& request) {
       return places.engine().matching().submit(places.now(),
                                                {.source = kAnyPeer,
                                                 .tag = 1,
                                                 .ignore = 0,
                                                 .segments = places.to,
                                                 .options = ReceiveOptions{}},
                                                request);
     },
     [](Places& places) {
       const PeerId back = places.scene.connect(places.host, 0);
       places.scene.send(places.host, back, 1, kBytes);
       places.wait();
       CHECK(places.request->length() == kBytes);
     }},
    {"a put from two places",
     [](Places& places, Request& request) {
       return places.engine().remote_memory().put(places.now(), places.there, {kKey, kPlace},
                                                  places.from, {}, request);
     },
     [](Places& places) {
       places.wait();
       CHECK(std::equal(places.bytes.begin(), places.bytes.end(),
                        places.memory[places.host - 1].begin() + kPlace));
     }},
    {"a get into two places",
     [](Places& places, Request& request) {
       return places.engine().remote_memory().get(places.now(), places.there, {kKey, kPlace},
                                                  places.to, request);
     },
     [](Places& places) {
       places.wait();
       CHECK(std::equal(places.buffer.begin(), places.buffer.end(),
                        places.memory[places.host - 1].begin() + kPlace));
     }},
    {"an atomic that compares",
     [](Places& places, Request& request) {
       const std::span bytes(places.bytes);
       return places.engine().remote_memory().atomic(places.now(), places.there, {kKey, kPlace},
                                                     {.op = AtomicOp::kSwapIfNotEqual,
                                                      .type = AtomicType::kUint64,
                                                      .count = 1,
                                                      .operand = bytes.first(8),
                                                      .compare = bytes.subspan(8, 8),
                                                      .result = std::span(places.buffer).first(8)},
                                                     request);
     },
     [](Places& places) {
       places.wait();
       CHECK(std::equal(places.buffer.begin(), places.buffer.begin() + 8,
                        places.initial.begin() + kPlace));
       CHECK(std::equal(places.bytes.begin(), places.bytes.begin() + 8,
                        places.memory[places.host - 1].begin() + kPlace));
     }},
};

// Makes the call with that many allocations; returns whether it threw.
template <typename Call>
bool throws(long allocations, Call call) {
  refused = false;
  granted = allocations;
  try {
    call();
    granted = -1;
    return false;
  } catch (const std::bad_alloc&) {
    granted = -1;
    return true;
  }
}

TEST_CASE("a call that throws for want of memory has changed nothing, and may be made again") {
  const Case& one = kCases[GENERATE(range(std::size_t{0}, std::size(kCases)))];
  const bool answered = GENERATE(true, false);
  for (long allocations = 0;; ++allocations) {
    INFO(one.what << (answered ? "" : ", before the peer has answered") << ", with " << allocations
                  << " allocations");
    Places places;
    for (const Case& each : kCases) {
      places.clean();
      REQUIRE(each.call(places, *places.request) != Status::kBusy);
      each.end(places);
      places.wait();
    }
    places.request = std::make_unique<Request>();  // a new one has no room for segments
    places.clean();
    if (!answered) {
      places.there = places.scene.connect(0, 2);
      places.host = 2;
      places.scene.send(0, places.there, 99, 10'000);  // sends behind it wait, too
    }
    Status returned = Status::kOk;

    const bool threw = throws(allocations, [&] { returned = one.call(places, *places.request); });

    CHECK(threw == refused);
    if (threw) {
      REQUIRE(places.request->done());
      places.scene.run_for(milliseconds(10));
      CHECK(places.memory[places.host - 1] == places.initial);
      returned = one.call(places, *places.request);
    }
    CHECK((returned == Status::kOk || returned == Status::kPending));
    one.end(places);
    places.wait();
    if (!refused) break;
    REQUIRE(allocations < 100);
  }
}

TEST_CASE("a space or region for which there was no memory can be made when there is") {
  for (long allocations = 0;; ++allocations) {
    INFO("with " << allocations << " allocations");
    Places places;
    std::vector<std::byte> lent(100);
    const std::vector<std::byte> sent = bytes_of(100, 9);
    std::vector<std::byte> here(100);
    const ReceiveOptions space{.space = 3};
    places.scene.connect(0, 2);
    bool added = false;
    const auto lend = [&] {
      added = places.engine().remote_memory().add_region(9, lent, Access::kWrite);
    };
    const auto receive = [&] {
      const std::span<std::byte> whole[] = {here};
      places.engine().matching().submit(
          places.now(),
          {.source = kAnyPeer, .tag = 1, .ignore = 0, .segments = whole, .options = space},
          *places.request);
    };

    int refusals = 0;
    const auto retry = [&](auto call) {
      if (!throws(allocations, call)) return;
      ++refusals;
      call();
    };
    retry(lend);
    retry(receive);
    REQUIRE(added);

    const PeerId back = [&] {
      std::optional<PeerId> found;
      REQUIRE(places.scene.run_until([&] { return (found = places.scene.accept(2)).has_value(); }));
      return *found;
    }();
    Request send;
    SendOptions in_space;
    in_space.space = space.space;
    const std::span<const std::byte> whole[] = {sent};
    places.scene.engine(2).sending().submit(
        places.scene.node(2).local_now(),
        {.peer = back, .tag = 1, .segments = whole, .options = in_space}, send);
    places.wait();
    CHECK(here == sent);
    Request put;
    places.scene.engine(2).remote_memory().put(places.scene.node(2).local_now(), back, {9, 0},
                                               whole, {}, put);
    REQUIRE(places.scene.run_until([&] { return put.done() && send.done(); }));
    CHECK(put.status() == Status::kOk);
    CHECK(lent == sent);
    if (refusals == 0) break;
    REQUIRE(allocations < 100);
  }
}

}  // namespace
}  // namespace pullman::sim
