// A world is all processes of a job: how many they are, which of them this one is, and how it
// reaches the others.
//
//   pullman::World world = pullman::World::from_environment();
//   pullman::PeerId next = world.peer((world.rank() + 1) % world.size());
//   world.context().send(next, 42, bytes, request);
//
// A world opens its context, since the key of the job's packets may come from where the processes
// find each other (docs/security.md). A process connects to those that it talks to, when it first
// does; only where rank 0 passes the addresses on (a rendezvous, an id) is it connected to all.
//
// Messages of the world itself use the space kSpaces - 1, which is not for the program's. Its
// collective calls are for starting and ending a job, and for small things; all processes make them
// in the same order. What else is done together belongs to MPI.
//
// pullman-stat --job asks the processes of a world what is stuck. With PULLMAN_REPORT=1 the
// destructor waits for all processes, and rank 0 prints what they counted (pullman.7).
//
// Threads: one at a time calls a world; its context may have many (Config::threads). Errors:
// everything here throws Error, with a sentence that names the rank that it waited for: kTimedOut
// if it did not come within the patience, or its status if it has ended. After an error in a
// collective call others fail.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pullman/config.h"
#include "pullman/context.h"
#include "pullman/multi_request.h"
#include "pullman/types.h"

namespace pullman {

// How a world is made.
struct WorldOptions {
  // Of the context. Keys are added if there are none; where all connect to rank 0 its max_peers and
  // unexpected_bytes are raised to hold them.
  Config config = Config::from_environment();
  // How long to wait for another process; 1 ms to a day.
  std::chrono::nanoseconds patience = std::chrono::seconds(60);
};

// All processes of a job.
class __attribute__((visibility("default"))) World {
 public:
  // Its options, by a shorter name.
  using Options = WorldOptions;

  // --- Ways to find each other. Each returns when this process is known to the others, or throws.

  // The job that this process was started in: PULLMAN_RENDEZVOUS=HOST:PORT, if it is set, is where
  // rank 0 waits for the others, and ranks come from PULLMAN_RANK and PULLMAN_SIZE, or what Slurm
  // or a PMI launcher says instead; processes may start in any order. Else the launcher's PMIx,
  // PMI-2 or, without a library for that, PMI-1 is asked; all processes must make the same worlds
  // in the same order. Throws kBadOption with what was looked for if there is none of them.
  static World from_environment(const Options& options = {});

  // For programs that have a way to hand 128 bytes to each of their processes. Rank 0 creates the
  // world and passes id() on; the others join it. The id holds the key of the job's packets, unless
  // the Config names another: pass it on where nobody else sees it.
  using Id = std::array<std::byte, 128>;
  // Makes this process rank 0 of a world. Does not wait for the others; the next call that needs
  // one does, and makes the others' join() return.
  static World create(unsigned size, const Options& options = {});
  // Joins the world with that id, as that rank. Returns once rank 0 has let it in.
  static World join(const Id& id, unsigned rank, unsigned size, const Options& options = {});

  // For programs that have sockets or MPI already. The function gives each process the bytes of
  // all, in the order of their ranks; all pass equally many. It is called twice, and carries the
  // key of the job's packets unless the Config names another.
  using Allgather = std::function<void(std::span<const std::byte> mine, std::span<std::byte> all)>;
  // Makes the world of all processes that call it, each with its rank.
  static World from_allgather(unsigned rank, unsigned size, const Allgather& allgather,
                              const Options& options = {});

  // Takes the other's place; what is left of that can only be destroyed.
  World(World&& other) noexcept;
  // Takes part in the report, if there is one (PULLMAN_REPORT), and closes the context.
  ~World();

  // Returns the context of this process, which the world owns.
  Context& context();
  // Returns which of the processes this is, from 0 on.
  unsigned rank() const;
  // Returns how many processes there are.
  unsigned size() const;
  // Returns how the processes have found each other, for people.
  std::string source() const;
  // The id of a world that was created here. Throws kInvalidArgument for another.
  Id id() const;

  // Returns the handle of a process, which is connected at the first call, and anew if the handle
  // has ended. That may ask the launcher for its address, and wait until it is there; packets move
  // once a second meanwhile. The process' own rank is a peer, too.
  PeerId peer(unsigned rank);
  // Returns the rank of a peer, also of one that has connected to this process by World::peer(), or
  // that has ended; nothing if it is not known as a process of the world.
  std::optional<unsigned> rank_of(PeerId peer);

  // Returns when all processes have called it.
  void barrier();
  // The longest card of allgather().
  static constexpr std::size_t kMaxCardBytes = 1024;
  // Returns what each process has passed, in the order of their ranks. They may differ in length.
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> card);
  // The longest message of broadcast().
  static constexpr std::size_t kMaxBroadcastBytes = std::size_t{1} << 30;
  // Returns the message of the process `root`, at every process; the others pass none.
  SharedBytes broadcast(unsigned root, SharedBytes message = nullptr);

 private:
  struct State;
  [[gnu::visibility("hidden")]] static World meet_at(const char* rendezvous,
                                                     const Options& options);
  [[gnu::visibility("hidden")]] explicit World(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pullman
