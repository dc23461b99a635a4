// A process of a job that stands still in a way that a test chooses, so that pullman-stat --job has
// something to find. Driven by test_job.py; ends when its standard input does.
//
//   job-member RANK receive     that rank makes no call any more; the others wait for its message
//   job-member RANK send        the same, for its receive
//   job-member RANK barrier     the same, for its part of a barrier
//   job-member RANK calls       that rank waits for the next one, and makes calls, but no turns
//   job-member RANK callbacks   that rank only calls in callbacks, which its progress thread makes
//   job-member RANK posted      as receive; the others say when they have begun to wait
//   job-member RANK go-on       all go on
//   job-member RANK apart       the same, but no rank has talked to another
//   job-member RANK end         all end
//   job-member RANK close       the same, behind closing their contexts
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "pullman/pullman.h"

namespace {

constexpr pullman::Tag kTag = 1;

void end_with_input() {
  std::thread([] {
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    std::_Exit(0);
  }).detach();
}

// All are connected to all.
void greet_all(pullman::World& world) {
  std::vector<pullman::Request> sent(world.size());
  std::vector<pullman::Request> received(world.size());
  std::vector<std::byte> bytes(world.size());
  pullman::Context& context = world.context();
  for (unsigned rank = 0; rank < world.size(); ++rank) {
    if (rank == world.rank()) continue;
    context.send(world.peer(rank), kTag, std::span(bytes).first(1), sent[rank]);
    context.receive(world.peer(rank), kTag, 0, std::span(bytes).subspan(rank, 1), received[rank]);
  }
  for (unsigned rank = 0; rank < world.size(); ++rank) {
    context.wait(sent[rank]);
    context.wait(received[rank]);
  }
  world.barrier();
}

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

// Makes no turns.
[[noreturn]] void call_only(pullman::World& world) {
  pullman::Context& context = world.context();
  const pullman::PeerId next = world.peer((world.rank() + 1) % world.size());
  std::array<std::byte, 1> byte{};
  pullman::CallbackRequest received(context, [](pullman::CallbackRequest&) {});
  context.receive(next, kTag, 0, byte, received);
  for (;;) {
    static_cast<void>(context.stats());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// Has itself called back by what it sends to itself.
[[noreturn]] void call_in_callbacks(pullman::World& world) {
  pullman::Context& context = world.context();
  const pullman::PeerId self = context.connect(context.address());
  std::array<std::byte, 1> byte{};
  pullman::CallbackRequest sent(context, [&](pullman::CallbackRequest&) {});
  const auto send = [&] { context.send(self, kTag, byte, sent); };
  pullman::CallbackRequest received(context, [&](pullman::CallbackRequest& done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    context.receive(self, kTag, 0, byte, done);
    if (sent.done()) send();
  });
  context.receive(self, kTag, 0, byte, received);
  send();
  for (;;) sleep(1);
}

void wait_for(pullman::World& world, unsigned rank, const std::string& how) {
  std::vector<std::byte> bytes(std::size_t{16} << 20);
  pullman::Request request;
  pullman::Context& context = world.context();
  if (how == "barrier") {
    world.barrier();
  } else if (how == "receive" || how == "posted" || how == "calls" || how == "callbacks") {
    context.receive(world.peer(rank), kTag, 0, bytes, request);
    if (how == "posted") say("posted");
    context.wait(request);
  } else if (how == "send") {
    context.send(world.peer(rank), kTag, bytes, request);
    context.wait(request);
  }
  for (;;) context.wait_for_arrival(std::chrono::milliseconds(10));
}

void run(unsigned culprit, const std::string& how) {
  pullman::WorldOptions options;
  if (how != "end" && how != "close") options.patience = std::chrono::hours(1);
  pullman::World world = pullman::World::from_environment(options);
  if (how != "apart") greet_all(world);
  say("ready");
  if (how == "close") world.context().close();
  if (how == "end" || how == "close") return;
  if (world.rank() == culprit && how == "calls") call_only(world);
  if (world.rank() == culprit && how == "callbacks") call_in_callbacks(world);
  while (world.rank() == culprit && how != "go-on" && how != "apart") sleep(1);
  wait_for(world, culprit, how);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const std::string how = argv[2];
    if (how != "end" && how != "close") end_with_input();
    run(static_cast<unsigned>(std::atoi(argv[1])), how);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "job-member: %s\n", error.what());
    return 1;
  }
}
