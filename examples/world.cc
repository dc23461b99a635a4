// All processes of a job, however it was started: mpirun, srun, mpiexec, or PULLMAN_RENDEZVOUS (see
// pullman/world.h). Each says hello to the next, and rank 0 tells who there is.
//
//   mpirun -n 4 ./world [SECONDS to wait for others]
//   PULLMAN_RENDEZVOUS=10.0.0.1:7400 PULLMAN_SIZE=2 PULLMAN_RANK=0 ./world     on 10.0.0.1, and so
//   on
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "pullman/pullman.h"

namespace {

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void greet(pullman::World& world) {
  constexpr pullman::Tag kHello = 1;
  const unsigned next = (world.rank() + 1) % world.size();
  const unsigned previous = (world.rank() + world.size() - 1) % world.size();
  const auto mine = static_cast<std::byte>(world.rank());
  std::byte heard{};
  pullman::Request sent;
  pullman::Request received;
  pullman::Context& context = world.context();
  context.receive(world.peer(previous), kHello, 0, {&heard, 1}, received);
  context.send(world.peer(next), kHello, {&mine, 1}, sent);
  if (context.wait(received) != pullman::Status::kOk ||
      context.wait(sent) != pullman::Status::kOk || heard != static_cast<std::byte>(previous)) {
    throw pullman::Error(received.status(), "rank " + std::to_string(previous) + " is not heard");
  }
}

void run(int argc, char** argv) {
  pullman::WorldOptions options;
  if (argc > 1) options.patience = std::chrono::seconds(std::atoi(argv[1]));
  pullman::World world = pullman::World::from_environment(options);
  greet(world);
  const std::string name = host_name();
  const auto names = world.allgather(std::as_bytes(std::span(name)));
  if (world.rank() != 0) return;
  std::printf("%u processes, who met by %s:\n", world.size(), world.source().c_str());
  for (const auto& card : names) {
    std::printf("  %.*s\n", static_cast<int>(card.size()),
                reinterpret_cast<const char*>(card.data()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "world: %s\n", error.what());
    return 1;
  }
}
