// Worlds of several processes, which are threads here, each with a context of its own on loopback.
#include "pullman/world.h"

#include <algorithm>
#include <barrier>
#include <catch2/catch.hpp>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pullman::test {
namespace {

using Bytes = std::vector<std::byte>;

WorldOptions options() {
  WorldOptions options;
  options.config.nics = {"lo"};
  options.config.receive_packets = 16;
  options.config.send_packets = 256;
  options.config.shared_memory = false;
  options.config.sleep_after = std::chrono::microseconds(50);
  options.patience = std::chrono::seconds(60);
  return options;
}

// Runs a body as each rank, and returns what each has thrown, or nothing.
std::vector<std::string> run_ranks(unsigned size, const std::function<void(unsigned)>& body,
                                   std::barrier<>* meeting = nullptr) {
  std::vector<std::string> problems(size);
  std::vector<std::thread> threads;
  for (unsigned rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        problems[rank] = error.what();
      }
      if (meeting != nullptr) meeting->arrive_and_drop();  // others may wait for this one
    });
  }
  for (std::thread& thread : threads) thread.join();
  return problems;
}

bool all_well(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    if (!problem.empty()) UNSCOPED_INFO(problem);
  }
  return std::all_of(problems.begin(), problems.end(),
                     [](const std::string& problem) { return problem.empty(); });
}

// An allgather between the threads, as a program with sockets would have one.
class Gathering {
 public:
  explicit Gathering(unsigned size) : size_(size), together_(size) {}

  World::Allgather as(unsigned rank) {
    return [this, rank](std::span<const std::byte> mine, std::span<std::byte> all) {
      if (rank == 0) all_.assign(mine.size() * size_, std::byte{0});
      together_.arrive_and_wait();
      std::copy(mine.begin(), mine.end(),
                all_.begin() + static_cast<std::ptrdiff_t>(rank * mine.size()));
      together_.arrive_and_wait();
      std::copy(all_.begin(), all_.end(), all.begin());
      together_.arrive_and_wait();
    };
  }

 private:
  const unsigned size_;
  std::barrier<> together_;
  Bytes all_;
};

Bytes text(const std::string& words) {
  const auto* const first = reinterpret_cast<const std::byte*>(words.data());
  return {first, first + words.size()};
}

// Every collective call.
void do_everything(World& world, unsigned rank, unsigned size) {
  if (world.rank() != rank || world.size() != size) throw std::runtime_error("another place");
  world.barrier();
  const auto cards = world.allgather(text(std::string(rank % 5, 'x') + std::to_string(rank)));
  for (unsigned i = 0; i < size; ++i) {
    if (cards.at(i) != text(std::string(i % 5, 'x') + std::to_string(i))) {
      throw std::runtime_error("wrong cards");
    }
  }
  for (const unsigned root : {0U, size - 1, size / 2}) {
    const Bytes words = text("from " + std::to_string(root));
    const auto got =
        world.broadcast(root, rank == root ? std::make_shared<const Bytes>(words) : nullptr);
    if (*got != words) throw std::runtime_error("wrong broadcast");
  }
}

}  // namespace

TEST_CASE("a world that is gathered does everything together", "[world]") {
  const unsigned size = GENERATE(1U, 2U, 3U, 7U, 20U);
  Gathering gathering(size);
  CHECK(all_well(run_ranks(size, [&](unsigned rank) {
    World world = World::from_allgather(rank, size, gathering.as(rank), options());
    do_everything(world, rank, size);
  })));
}

TEST_CASE("a world that is joined does everything together", "[world]") {
  const unsigned size = GENERATE(1U, 2U, 6U);
  std::optional<World> first = World::create(size, options());
  const World::Id id = first->id();
  CHECK(all_well(run_ranks(size, [&](unsigned rank) {
    if (rank == 0) {
      do_everything(*first, rank, size);
      return first.reset();
    }
    World world = World::join(id, rank, size, options());
    do_everything(world, rank, size);
  })));
}

// As many threads as processes: on a busy machine each waits long for a processor.
TEST_CASE("a world of 257 processes does everything together", "[many]") {
  constexpr unsigned kSize = 257;
  WorldOptions patient = options();
  patient.patience = std::chrono::minutes(5);
  patient.config.peer_timeout = std::chrono::minutes(5);
  Gathering gathering(kSize);
  CHECK(all_well(run_ranks(kSize, [&](unsigned rank) {
    World world = World::from_allgather(rank, kSize, gathering.as(rank), patient);
    do_everything(world, rank, kSize);
  })));
}

TEST_CASE("who has connected to a process is known by rank, and has one handle", "[world]") {
  constexpr unsigned kSize = 5;
  Gathering gathering(kSize);
  CHECK(all_well(run_ranks(kSize, [&](unsigned rank) {
    World world = World::from_allgather(rank, kSize, gathering.as(rank), options());
    Context& context = world.context();
    std::vector<Request> sent(kSize);
    const std::byte mine{static_cast<unsigned char>(rank)};
    for (unsigned to = 0; to < kSize; ++to) context.send(world.peer(to), 7, {&mine, 1}, sent[to]);
    for (unsigned i = 0; i < kSize; ++i) {
      std::byte from{};
      Request received;
      context.receive(kAnyPeer, 7, 0, {&from, 1}, received);
      if (context.wait(received) != Status::kOk) throw std::runtime_error("nothing received");
      const auto sender = world.rank_of(received.source());
      if (!sender || *sender != std::to_integer<unsigned>(from)) {
        throw std::runtime_error("another sender");
      }
      if (world.peer(*sender) != received.source()) throw std::runtime_error("two handles");
    }
    for (Request& request : sent) context.wait(request);
    world.barrier();
  })));
}

TEST_CASE("a process has as many peers as it talks to", "[world]") {
  constexpr unsigned kSize = 24;
  Gathering gathering(kSize);
  CHECK(all_well(run_ranks(kSize, [&](unsigned rank) {
    World world = World::from_allgather(rank, kSize, gathering.as(rank), options());
    if (world.context().stats().peers_connected != 0)
      throw std::runtime_error("connected for nothing");
    for (int i = 0; i < 3; ++i) world.barrier();
    if (world.context().stats().peers_connected > 5)
      throw std::runtime_error("more than the tree needs");
  })));
}

TEST_CASE("a rank that never comes is named to all that have", "[world]") {
  constexpr unsigned kSize = 4;
  WorldOptions impatient = options();
  impatient.patience = std::chrono::seconds(4);
  World first = World::create(kSize, impatient);
  const World::Id id = first.id();
  const auto problems = run_ranks(kSize, [&](unsigned rank) {
    if (rank == 0) return first.barrier();
    if (rank == 2) return;
    WorldOptions patient = options();
    World::join(id, rank, kSize, patient).barrier();
  });
  for (const unsigned rank : {0U, 1U, 3U}) {
    CHECK_THAT(problems[rank], Catch::Contains("rank 2 of 4 has not come within 4 s"));
  }
}

TEST_CASE("a rank that is gone, or does not make the call, is named", "[world]") {
  constexpr unsigned kSize = 2;
  const bool leaves = GENERATE(true, false);
  WorldOptions impatient = options();
  impatient.patience = std::chrono::seconds(2);
  impatient.config.close_timeout = std::chrono::milliseconds(300);  // rank 1 makes no calls
  Gathering gathering(kSize);
  std::barrier<> together(kSize);
  const auto problems = run_ranks(
      kSize,
      [&](unsigned rank) {
        std::optional<World> world =
            World::from_allgather(rank, kSize, gathering.as(rank), impatient);
        world->barrier();
        if (rank == 1 && leaves) world.reset();
        together.arrive_and_wait();
        if (rank == 0) world->barrier();
        if (!leaves) together.arrive_and_wait();  // rank 1 stays that long
      },
      &together);
  CHECK_THAT(problems[0],
             Catch::Contains(leaves ? "rank 1 is gone" : "rank 1 has not made the same call"));
}

TEST_CASE("after a call that failed others fail at once", "[world]") {
  WorldOptions impatient = options();
  impatient.patience = std::chrono::milliseconds(300);
  Gathering gathering(2);
  std::barrier<> together(2);
  const auto problems = run_ranks(
      2,
      [&](unsigned rank) {
        World world = World::from_allgather(rank, 2, gathering.as(rank), impatient);
        if (rank == 1) return together.arrive_and_wait();
        CHECK_THROWS_AS(world.barrier(), Error);
        world.allgather({});
      },
      &together);
  CHECK_THAT(problems[0], Catch::Contains("an earlier call"));
}

TEST_CASE("what was passed on arrives, although its sender has left", "[world]") {
  constexpr unsigned kSize = 6;
  Gathering gathering(kSize);
  const Bytes message(100'000, std::byte{7});
  CHECK(all_well(run_ranks(kSize, [&](unsigned rank) {
    World world = World::from_allgather(rank, kSize, gathering.as(rank), options());
    const auto got =
        world.broadcast(0, rank == 0 ? std::make_shared<const Bytes>(message) : nullptr);
    if (*got != message) throw std::runtime_error("another message");
  })));
}

TEST_CASE("a process whose handle has ended is called again", "[world]") {
  Gathering gathering(2);
  std::barrier<> together(2);
  CHECK(all_well(run_ranks(
      2,
      [&](unsigned rank) {
        World world = World::from_allgather(rank, 2, gathering.as(rank), options());
        world.barrier();
        const PeerId before = world.peer(1 - rank);
        if (rank == 0) world.context().disconnect(before);
        world.barrier();
        if (rank == 0 && world.peer(1) == before) throw std::runtime_error("the same handle");
        if (world.rank_of(before) != 1 - rank) throw std::runtime_error("forgotten");
      },
      &together)));
}

TEST_CASE("nobody is believed to be a process that is connected, or this one", "[world]") {
  constexpr Tag kIntroduction = 0;
  Gathering gathering(3);
  std::barrier<> together(3);
  CHECK(all_well(run_ranks(
      3,
      [&](unsigned rank) {
        World world = World::from_allgather(rank, 3, gathering.as(rank), options());
        world.barrier();  // the first is connected to both others
        if (rank == 2) {
          for (const unsigned claimed : {0U, 1U, 7U}) {
            const std::vector<std::byte> lie = {std::byte(claimed), {}, {}, {}};
            SendOptions in_space;
            in_space.space = kSpaces - 1;
            Request sent;
            world.context().send(world.peer(0), kIntroduction, lie, in_space, sent);
          }
        }
        world.barrier();
        if (rank != 0) return;
        if (world.rank_of(world.peer(1)) != 1U) throw std::runtime_error("another rank 1");
        if (world.rank_of(world.peer(0)) != 0U) throw std::runtime_error("another self");
        if (world.rank_of(world.peer(2)) != 2U) throw std::runtime_error("another rank 2");
      },
      &together)));
}

TEST_CASE("a process that does not fit is told so, and the others are waited for", "[world]") {
  std::optional<World> first = World::create(2, options());
  const World::Id id = first->id();
  std::latch refused(1);
  const auto problems = run_ranks(3, [&](unsigned thread) {
    if (thread == 0) {
      first->barrier();
      return first.reset();
    }
    if (thread == 1) {
      CHECK_THROWS_WITH(World::join(id, 1, 3, options()),
                        "rank 1 says that there are 3 processes, rank 0 that there are 2");
      return refused.count_down();
    }
    refused.wait();
    World::join(id, 1, 2, options()).barrier();
  });
  CHECK(all_well(problems));
}

TEST_CASE("of two processes of one rank one is told so", "[world]") {
  std::optional<World> first = World::create(3, options());
  const World::Id id = first->id();
  std::latch refused(1);
  const auto problems = run_ranks(4, [&](unsigned thread) {
    if (thread == 0) {
      first->barrier();
      return first.reset();
    }
    if (thread == 3) {
      refused.wait();
      return World::join(id, 2, 3, options()).barrier();
    }
    try {
      World::join(id, 1, 3, options()).barrier();
    } catch (const Error&) {
      refused.count_down();
      throw;
    }
  });
  CHECK(problems[0] + problems[3] == "");
  CHECK_THAT(problems[1] + problems[2], Catch::Equals("two processes say that they are rank 1"));
}

TEST_CASE("an id of another world, or of nobody, is refused", "[world]") {
  World::Id id{};
  CHECK_THROWS_AS(World::join(id, 1, 2, options()), Error);
  World first = World::create(2, options());
  id = first.id();
  id[0] ^= std::byte{1};  // another key
  WorldOptions impatient = options();
  impatient.patience = std::chrono::seconds(1);
  CHECK_THROWS_WITH(World::join(id, 1, 2, impatient), Catch::Contains("rank 0 has not answered"));
}

TEST_CASE("places and cards that cannot be are refused", "[world]") {
  CHECK_THROWS_AS(World::create(0, options()), Error);
  World alone = World::create(1, options());
  CHECK_THROWS_AS(World::join(alone.id(), 0, 1, options()), Error);
  CHECK_THROWS_AS(World::join(alone.id(), 3, 3, options()), Error);
  CHECK_THROWS_AS(alone.peer(1), Error);
  CHECK_THROWS_AS(alone.broadcast(1), Error);
  CHECK_THROWS_AS(alone.allgather(Bytes(World::kMaxCardBytes + 1)), Error);
}

}  // namespace pullman::test
