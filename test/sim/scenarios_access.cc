// Scenarios: puts, gets and atomics (wire.md 10). They are the specification.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/operations.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kKey = 0xABCD;
constexpr std::uint64_t kSomeLost = 100'000;  // of a million

// Host 1 has a region; host 0 works on it.
struct Remote {
  explicit Remote(std::size_t size = 1 << 20, Access access = Access::kReadWrite)
      : memory(bytes_of(size, 3)) {
    REQUIRE(scene.engine(1).remote_memory().add_region(kKey, memory, access));
    const auto couple = scene.couple(0, 1);
    there = couple.there;
    back = couple.back;
  }
  void lose_some() {
    for (WireFaults* wire : {&scene.network().wire(0, 1), &scene.network().wire(1, 0)}) {
      wire->loss = wire->duplicate = wire->reorder = kSomeLost;
      wire->reorder_by = milliseconds(1);
    }
  }
  bool done(const Act& act) { return scene.run_until_done(act); }
  bool intact() const { return memory == bytes_of(memory.size(), 3); }
  bool holds_at(std::size_t offset, const std::vector<std::byte>& bytes) const {
    return std::equal(bytes.begin(), bytes.end(), memory.begin() + static_cast<long>(offset));
  }
  std::uint64_t word_at(std::size_t offset) const {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data() + offset, sizeof word);
    return word;
  }
  void set_word(std::size_t offset, std::uint64_t word) {
    std::memcpy(memory.data() + offset, &word, sizeof word);
  }

  // Engines end before what they refer to, so the scene comes after the buffers.
  std::vector<std::byte> memory;
  Doings does{scene};
  Scene scene;
  PeerId there;
  PeerId back;
};

TEST_CASE("a put writes exactly its bytes, whatever their number") {
  const std::size_t size = GENERATE(0u, 1u, 8u, 1000u, 1500u, 70'000u, 500'000u);
  Remote remote;
  if (GENERATE(false, true)) remote.lose_some();
  std::vector<std::byte> expected = remote.memory;
  const auto bytes = bytes_of(size, 77);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 1001);

  Act& put = remote.does.put(0, remote.there, {kKey, 1001}, bytes);

  CHECK(put.returned == Status::kPending);
  REQUIRE(remote.done(put));
  CHECK(put.status() == Status::kOk);
  CHECK(put.request.length() == size);
  CHECK(remote.memory == expected);
}

TEST_CASE("a get reads exactly what is in the region") {
  const std::size_t size = GENERATE(0u, 1u, 1000u, 1500u, 70'000u, 500'000u);
  Remote remote;
  if (GENERATE(false, true)) remote.lose_some();

  Act& get = remote.does.get(0, remote.there, {kKey, 1001}, size);

  CHECK(get.returned == Status::kPending);
  REQUIRE(remote.done(get));
  CHECK(get.status() == Status::kOk);
  CHECK(get.request.length() == size);
  CHECK(remote.holds_at(1001, get.bytes));
  CHECK(remote.intact());
}

TEST_CASE("what a region does not grant is refused, and nothing is written") {
  const std::size_t size = GENERATE(8u, 100'000u);
  constexpr std::size_t kRegion = 200'000;
  const RemotePlace place = GENERATE(RemotePlace{kKey + 1, 0}, RemotePlace{kKey, kRegion - 7},
                                     RemotePlace{kKey, kRegion + 1}, RemotePlace{kKey, ~0ull},
                                     RemotePlace{kKey, ~0ull - 6}, RemotePlace{0, 0});
  Remote remote(kRegion);

  Act& put = remote.does.put(0, remote.there, place, bytes_of(size, 1));
  Act& get = remote.does.get(0, remote.there, place, size);
  Act& add = remote.does.add(0, remote.there, place, 5, false);
  Act& fetch = remote.does.add(0, remote.there, place, 5, true);

  for (Act* act : {&put, &get, &add, &fetch}) {
    REQUIRE(remote.done(*act));
    CHECK(act->status() == Status::kRefusedAccess);
    CHECK(act->request.length() == 0);
  }
  CHECK(remote.intact());
  Act& good = remote.does.put(0, remote.there, {kKey, kRegion - size}, bytes_of(size, 9));
  REQUIRE(remote.done(good));
  CHECK(good.status() == Status::kOk);
  remote.scene.run_for(milliseconds(50));
  CHECK(remote.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("a region grants what it was registered for and no more") {
  const Access access = GENERATE(Access::kNone, Access::kRead, Access::kWrite);
  Remote remote(4096, access);
  const auto expect = [&](Act& act, Access needed) {
    REQUIRE(remote.done(act));
    CHECK(act.status() == (allows(access, needed) ? Status::kOk : Status::kRefusedAccess));
  };

  expect(remote.does.get(0, remote.there, {kKey, 0}, 64), Access::kRead);
  expect(remote.does.add(0, remote.there, {kKey, 0}, 1, true), Access::kReadWrite);
  const std::vector<std::byte> none;
  expect(
      remote.does.atomic(0, remote.there, {kKey, 0},
                         {.op = AtomicOp::kRead, .operand = none, .compare = {}, .result = {}}, 8),
      Access::kRead);
  if (access != Access::kWrite) CHECK(remote.intact());
  expect(remote.does.put(0, remote.there, {kKey, 0}, bytes_of(64, 1)), Access::kWrite);
  expect(remote.does.add(0, remote.there, {kKey, 0}, 1, false), Access::kWrite);
  if (access != Access::kWrite) CHECK(remote.intact());
}

TEST_CASE("a region withdrawn while a put is written is not touched afterwards") {
  Remote remote(4 << 20);
  remote.scene.network().wire(0, 1).ns_per_kib = 2000;
  if (GENERATE(false, true)) remote.lose_some();
  Act& put = remote.does.put(0, remote.there, {kKey, 0}, bytes_of(4 << 20, 50));
  REQUIRE(remote.scene.run_until(
      [&] { return remote.memory[600'000] != bytes_of(600'001, 3).back(); }));

  CHECK(remote.scene.engine(1).remote_memory().remove_region(kKey));
  const std::vector<std::byte> then = remote.memory;

  REQUIRE(remote.done(put));
  CHECK(put.status() == Status::kRefusedAccess);
  CHECK(remote.memory == then);
  CHECK_FALSE(remote.scene.engine(1).remote_memory().remove_region(kKey));
}

TEST_CASE("a get that has begun is completed although the region is withdrawn meanwhile") {
  Remote remote(4 << 20);
  remote.scene.network().wire(1, 0).ns_per_kib = 2000;
  if (GENERATE(false, true)) remote.lose_some();
  const std::vector<std::byte> before = remote.memory;
  Act& get = remote.does.get(0, remote.there, {kKey, 0}, 4 << 20);
  REQUIRE(remote.scene.run_until([&] { return get.bytes[600'000] == before[600'000]; }));

  remote.scene.engine(1).remote_memory().remove_region(kKey);
  std::fill(remote.memory.begin(), remote.memory.end(), std::byte{0});

  REQUIRE(remote.done(get));
  CHECK(get.status() == Status::kOk);
  CHECK(get.bytes == before);
}

TEST_CASE("what a withdrawn region still has to send again is sent as it was") {
  Remote remote(4 << 20);
  remote.scene.network().wire(1, 0).ns_per_kib = 2000;
  const std::vector<std::byte> before = remote.memory;
  Act& get = remote.does.get(0, remote.there, {kKey, 0}, 4 << 20);
  REQUIRE(remote.scene.run_until([&] { return get.bytes[600'000] == before[600'000]; }));
  remote.scene.network().set_drop_rule(
      [](const Passing& passing) { return passing.from.host == 1; });
  remote.scene.run_for(microseconds(200));
  remote.scene.network().set_drop_rule({});
  REQUIRE(remote.scene.run_until([&] { return remote.scene.stats(1).retransmits > 0; }));

  remote.scene.engine(1).remote_memory().remove_region(kKey);
  std::fill(remote.memory.begin(), remote.memory.end(), std::byte{0});

  REQUIRE(remote.done(get));
  CHECK(get.bytes == before);
}

TEST_CASE("an atomic is done exactly once, whatever is lost or duplicated") {
  Remote remote(64);
  remote.lose_some();
  remote.set_word(8, 0);
  constexpr std::uint64_t kCount = 400;
  std::vector<Act*> fetches;
  std::uint64_t sum = 0;

  for (std::uint64_t i = 1; i <= kCount; ++i) {
    Act& add = remote.does.add(0, remote.there, {kKey, 8}, i, i % 2 == 0);
    if (i % 2 == 0) fetches.push_back(&add);
    if (i % 7 == 0) remote.scene.run_for(milliseconds(1));
  }
  REQUIRE(remote.scene.run_until([&] {
    return std::all_of(fetches.begin(), fetches.end(), [](Act* act) { return act->done(); });
  }));

  // Each fetched the sum of those called before it.
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    if (i % 2 == 0) {
      std::uint64_t before = 0;
      std::memcpy(&before, fetches[i / 2 - 1]->bytes.data(), sizeof before);
      CHECK(before == sum);
    }
    sum += i;
  }
  CHECK(remote.word_at(8) == sum);
}

TEST_CASE("a compare-and-swap changes a value that is as expected, and returns the value before") {
  Remote remote(64);
  remote.set_word(16, 41);
  const auto swap = [&](std::uint64_t compare, std::uint64_t operand) {
    Act& act = remote.does.atomic(0, remote.there, {kKey, 16},
                                  {.op = AtomicOp::kSwapIfEqual,
                                   .operand = std::as_bytes(std::span(&operand, 1)),
                                   .compare = std::as_bytes(std::span(&compare, 1)),
                                   .result = {}},
                                  8);
    REQUIRE(remote.done(act));
    std::uint64_t before = 0;
    std::memcpy(&before, act.bytes.data(), sizeof before);
    return before;
  };

  CHECK(swap(40, 1) == 41);
  CHECK(remote.word_at(16) == 41);
  CHECK(swap(41, 2) == 41);
  CHECK(remote.word_at(16) == 2);
}

TEST_CASE("a vector of elements is updated whole, also when it takes more than a packet") {
  Remote remote(4096);
  for (auto* wire : {&remote.scene.network().wire(0, 1)}) wire->loss = 200'000;
  std::vector<double> there(kMaxAtomicBytes / sizeof(double));
  std::vector<double> operand(there.size());
  for (std::size_t i = 0; i < there.size(); ++i) {
    there[i] = static_cast<double>(i);
    operand[i] = 0.5 * static_cast<double>(i % 7);
  }
  std::memcpy(remote.memory.data() + 3, there.data(), kMaxAtomicBytes);

  Act& act = remote.does.atomic(0, remote.there, {kKey, 3},
                                {.op = AtomicOp::kSum,
                                 .type = AtomicType::kDouble,
                                 .count = there.size(),
                                 .operand = std::as_bytes(std::span(operand)),
                                 .compare = {},
                                 .result = {}},
                                kMaxAtomicBytes);

  REQUIRE(remote.done(act));
  const auto expected = std::as_bytes(std::span(there));
  CHECK(std::equal(expected.begin(), expected.end(), act.bytes.begin(), act.bytes.end()));
  for (std::size_t i = 0; i < there.size(); ++i) there[i] += operand[i];
  CHECK(std::equal(expected.begin(), expected.end(), remote.memory.begin() + 3));
}

// wire.md 10.3
TEST_CASE("an atomic whose last packet is late is done when that arrives, and not before") {
  const std::size_t fetched = GENERATE(std::size_t{0}, kMaxAtomicBytes);
  Remote remote(kMaxAtomicBytes);
  std::vector<std::uint64_t> words(kMaxAtomicBytes / sizeof(std::uint64_t));
  std::memcpy(words.data(), remote.memory.data(), kMaxAtomicBytes);
  std::vector<std::uint64_t> operand(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] += operand[i] = i + 1;
  bool late = true;
  int chunks = 0;
  remote.scene.network().set_drop_rule([&](const Passing& passing) {
    const bool counts =
        passing.from.host == 0 && Opened(passing.bytes).has(wire::FrameType::kChunk);
    return counts && ++chunks > 1 && late;
  });

  Act& act = remote.does.atomic(0, remote.there, {kKey, 0},
                                {.op = AtomicOp::kSum,
                                 .type = AtomicType::kUint64,
                                 .count = operand.size(),
                                 .operand = std::as_bytes(std::span(operand)),
                                 .compare = {},
                                 .result = {}},
                                fetched);
  remote.scene.run_for(milliseconds(20));
  REQUIRE(chunks > 1);
  CHECK_FALSE(act.done());
  CHECK(remote.intact());
  late = false;

  REQUIRE(remote.done(act));
  CHECK(act.status() == Status::kOk);
  CHECK(act.bytes == bytes_of(fetched, 3));
  CHECK(std::memcmp(remote.memory.data(), words.data(), kMaxAtomicBytes) == 0);
}

TEST_CASE("a put with immediate data leaves one event when all of it has been written") {
  const std::size_t size = GENERATE(0u, 100u, 300'000u);
  Remote remote;
  remote.lose_some();
  const auto bytes = bytes_of(size, 8);
  PutOptions options;
  options.immediate = 0x123456789ABCDEF0;

  remote.does.put(0, remote.there, {kKey, 77}, bytes, options);
  std::optional<RemoteEvent> event;
  REQUIRE(remote.scene.run_until(
      [&] { return bool(event = remote.scene.engine(1).remote_memory().take_event()); }));

  CHECK(remote.holds_at(77, bytes));
  CHECK(event->source == remote.back);
  CHECK(event->immediate == options.immediate);
  CHECK(event->key == kKey);
  CHECK(event->offset == 77);
  CHECK(event->length == size);
  remote.scene.run_for(seconds(1));
  CHECK_FALSE(remote.scene.engine(1).remote_memory().take_event());
  CHECK(remote.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("events that are not taken are dropped with the slot of the peer that caused them") {
  Remote remote;
  PutOptions options;
  options.immediate = 1;
  for (int round = 0; round < 3; ++round) {
    REQUIRE(remote.done(remote.does.put(0, remote.there, {kKey, 0}, bytes_of(8, 1), options)));
    remote.scene.run_for(milliseconds(20));
    remote.scene.disconnect(0, remote.there);
    remote.scene.disconnect(1, remote.back);
    remote.scene.run_for(seconds(1));
    const auto couple = remote.scene.couple(0, 1);
    remote.there = couple.there;
    remote.back = couple.back;
  }

  CHECK_FALSE(remote.scene.engine(1).remote_memory().take_event());
}

TEST_CASE("a refused put leaves no event") {
  Remote remote(4096);
  PutOptions options;
  options.immediate = 1;

  Act& put = remote.does.put(0, remote.there, {kKey, 4090}, bytes_of(100, 1), options);

  REQUIRE(remote.done(put));
  CHECK(put.status() == Status::kRefusedAccess);
  remote.scene.run_for(milliseconds(50));
  CHECK_FALSE(remote.scene.engine(1).remote_memory().take_event());
  CHECK(remote.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("a get is answered although unreceived messages have used up the answerer's allowance") {
  const std::size_t size = GENERATE(64u, 100'000u);
  Remote remote;
  std::vector<Act*> sends;
  for (Tag i = 0; i < 2400; ++i) sends.push_back(&remote.scene.send(1, remote.back, i, 1000));
  remote.scene.run_for(seconds(1));
  REQUIRE_FALSE(sends.back()->done());

  Act& get = remote.does.get(0, remote.there, {kKey, 5}, size);

  REQUIRE(remote.done(get));
  CHECK(remote.holds_at(5, get.bytes));
  CHECK_FALSE(sends.back()->done());
}

TEST_CASE(
    "puts, gets and atomics are done although unreceived messages have used up all allowance") {
  const std::size_t size = GENERATE(8u, 2040u, 2041u, 300'000u);
  Remote remote;
  if (GENERATE(false, true)) remote.lose_some();
  std::vector<Act*> sends;
  for (Tag i = 0; i < 1000; ++i) sends.push_back(&remote.scene.send(0, remote.there, i, 1000));
  remote.set_word(0, 5);

  Act& put = remote.does.put(0, remote.there, {kKey, 16}, bytes_of(size, 77));
  Act& get = remote.does.get(0, remote.there, {kKey, 16}, size);
  Act& add = remote.does.add(0, remote.there, {kKey, 0}, 2, false);

  for (Act* act : {&put, &get, &add}) REQUIRE(remote.done(*act));
  CHECK(put.status() == Status::kOk);
  CHECK(remote.holds_at(16, bytes_of(size, 77)));
  if (size <= 1000) CHECK(get.bytes == bytes_of(size, 77));
  CHECK(remote.word_at(0) == 7);
  CHECK(remote.scene.stats(1).messages_received == 0);
}

TEST_CASE("puts, gets and messages of one process take effect in the order of the calls") {
  Remote remote;
  Act& arrived = remote.does.receive(1, remote.back, 4, 8);

  remote.does.put(0, remote.there, {kKey, 0}, bytes_of(8, 20));
  Act& first = remote.does.get(0, remote.there, {kKey, 0}, 8);
  remote.does.put(0, remote.there, {kKey, 0}, bytes_of(8, 21));
  remote.does.send(0, remote.there, 4, bytes_of(8, 1), {});
  REQUIRE(remote.done(arrived));
  CHECK(remote.holds_at(0, bytes_of(8, 21)));

  REQUIRE(remote.done(first));
  CHECK(first.bytes == bytes_of(8, 20));
}

TEST_CASE("operations on a peer that restarts fail, and what it asked for is forgotten") {
  Remote remote(4 << 20);
  remote.scene.network().wire(0, 1).ns_per_kib = 2000;
  Act& put = remote.does.put(0, remote.there, {kKey, 0}, bytes_of(4 << 20, 1));
  Act& get = remote.does.get(0, remote.there, {kKey, 0}, 4 << 20);
  remote.scene.run_for(milliseconds(2));

  remote.scene.restart(1);
  Act& add = remote.does.add(0, remote.there, {kKey, 0}, 1, true);

  for (Act* act : {&put, &get, &add}) {
    REQUIRE(remote.scene.run_until_done(*act, seconds(120)));
    CHECK((act->status() == Status::kUnreachable || act->status() == Status::kPeerRestarted));
  }
}

TEST_CASE("an engine works on its own regions through a connection to itself") {
  Remote remote(64);
  const PeerId self = remote.scene.connect(1, 1);
  remote.set_word(0, 5);

  Act& add = remote.does.add(1, self, {kKey, 0}, 3, true);

  REQUIRE(remote.done(add));
  CHECK(remote.word_at(0) == 8);
}

TEST_CASE("a peer that disconnects has its gets answered first") {
  Remote remote;
  Act& get = remote.does.get(0, remote.there, {kKey, 0}, 500'000);
  Act& put = remote.does.put(0, remote.there, {kKey, 600'000}, bytes_of(100'000, 4));

  remote.scene.disconnect(0, remote.there);

  REQUIRE(remote.done(get));
  REQUIRE(remote.done(put));
  CHECK(get.status() == Status::kOk);
  CHECK(put.status() == Status::kOk);
}

// Early data behind a HELLO that crossed the peer's own waits for a proof, which may be a bare ACK:
// it must be answered then, and not only when something else is to be sent.
TEST_CASE("operations in the early data of HELLOs that cross are answered at once") {
  const Duration head_start =
      GENERATE(microseconds(0), microseconds(1), microseconds(4), microseconds(5), microseconds(9),
               microseconds(14), microseconds(21), microseconds(35));
  const Duration slow_zero = GENERATE(microseconds(0), microseconds(3), microseconds(20));
  const Duration slow_one = GENERATE(microseconds(0), microseconds(3), microseconds(20));
  const std::size_t caller = GENERATE(0u, 1u);
  const std::size_t first = GENERATE(0u, 1u);
  CAPTURE(head_start.count(), slow_zero.count(), slow_one.count(), caller, first);
  std::array<std::vector<std::byte>, 2> memory{bytes_of(100, 1), bytes_of(100, 2)};
  std::size_t host = 0;
  Scene scene(2, [&](NodePlan& plan) {
    plan.command.resolve_delay = plan.data.resolve_delay = host++ == 0 ? slow_zero : slow_one;
  });
  Doings does(scene);
  for (std::size_t at : {0u, 1u}) {
    scene.engine(at).remote_memory().add_region(kKey, memory[at], Access::kReadWrite);
  }
  std::vector<Act*> acts;
  const auto call = [&](std::size_t from) {
    const PeerId there = scene.connect(from, 1 - from);
    if (from != caller) return;
    acts.push_back(&does.put(from, there, {kKey, 0}, bytes_of(50, 3)));
    acts.push_back(&does.get(from, there, {kKey, 60}, 40));
    acts.push_back(&does.add(from, there, {kKey, 56}, 1, true));
    acts.push_back(&does.put(from, there, {kKey, 90}, bytes_of(50, 3)));
  };
  const auto all_done = [&] {
    return acts.size() == 4 &&
           std::all_of(acts.begin(), acts.end(), [](const Act* act) { return act->done(); });
  };

  const Instant start = scene.now();
  call(first);
  scene.run_for(head_start);
  call(1 - first);

  REQUIRE(scene.run_until(all_done));
  CHECK(scene.now() - start <= head_start + 2 * (slow_zero + slow_one) + microseconds(60));
  for (const Act* act : acts) {
    CHECK(act->status() == (act == acts.back() ? Status::kRefusedAccess : Status::kOk));
  }
}

}  // namespace
}  // namespace pullman::sim
