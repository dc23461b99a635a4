// One side of a test of sleeping: waits idle and says what that cost, plays ping-pong, waits idle
// again. Driven by test/kernel/soak.py. Prints lines of JSON.
//
// Without an address: the side that is called. It first waits for nobody at all.
// Exit code: 0 all well; 1 wrong (or set-up failed); 3 the peer was lost, `status` says how.
#include <poll.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "pullman/pullman.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr pullman::Tag kPing = 1;
constexpr pullman::Tag kPong = 2;
constexpr pullman::Tag kNothing = 3;  // nobody sends this

struct Options {
  std::string address;  // of the peer; empty: wait for one
  double idle_s = 2;    // of each idle wait
  int rounds = 20;
  unsigned pause_ms = 20;  // between rounds: the other side falls asleep
  double patience_s = 60;  // for one message
  bool own_loop = false;   // prepare_wait() and poll() in place of wait()
};

struct PeerLost {
  pullman::Status status;
};

void print(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// As wait(), by the loop that context.h shows to programs with one of their own.
pullman::Status wait_in_own_loop(pullman::Context& context, pullman::Request& request,
                                 Seconds timeout) {
  const auto end = Clock::now() + timeout;
  pollfd watched{context.wait_fd(), POLLIN, 0};
  for (;;) {
    while (!context.prepare_wait()) {
    }
    if (request.done()) return request.status();
    const Seconds left = end - Clock::now();
    if (left.count() <= 0) return pullman::Status::kTimedOut;
    poll(&watched, 1, static_cast<int>(left.count() * 1000) + 1);
  }
}

pullman::Status wait(pullman::Context& context, const Options& options, pullman::Request& request,
                     double timeout_s) {
  const Seconds timeout(timeout_s);
  if (options.own_loop) return wait_in_own_loop(context, request, timeout);
  return context.wait(request, std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
}

void finish(pullman::Context& context, const Options& options, pullman::Request& request) {
  const auto status = wait(context, options, request, options.patience_s);
  if (status != pullman::Status::kOk) throw PeerLost{status};
}

// Waits for what does not come, and says what it cost.
void wait_idle(pullman::Context& context, const Options& options, pullman::PeerId source,
               const char* state) {
  std::array<std::byte, 8> buffer{};
  pullman::Request nothing;
  context.receive(source, kNothing, 0, buffer, nothing);
  const auto began = Clock::now();
  const double before = processor_seconds();
  const auto status = wait(context, options, nothing, options.idle_s);
  const double used = processor_seconds() - before;
  const Seconds took = Clock::now() - began;
  context.cancel(nothing);
  print({{"event", "idle"},
         {"state", state},
         {"status", pullman::name(status)},
         {"asked_s", options.idle_s},
         {"took_s", took.count()},
         {"processor_percent", 100 * used / took.count()}});
}

void answer_pings(pullman::Context& context, const Options& options) {
  std::array<std::byte, 8> buffer{};
  pullman::Request receiving;
  pullman::Request sending;
  for (int round = 0; round < options.rounds; ++round) {
    context.receive(pullman::kAnyPeer, kPing, 0, buffer, receiving);
    finish(context, options, receiving);
    context.send(receiving.source(), kPong, buffer, sending);
    finish(context, options, sending);
  }
}

void send_pings(pullman::Context& context, const Options& options, pullman::PeerId peer) {
  std::array<std::byte, 8> buffer{};
  pullman::Request receiving;
  pullman::Request sending;
  for (int round = 0; round < options.rounds; ++round) {
    context.receive(peer, kPong, 0, buffer, receiving);
    context.send(peer, kPing, buffer, sending);
    finish(context, options, sending);
    finish(context, options, receiving);
    std::this_thread::sleep_for(std::chrono::milliseconds(options.pause_ms));
  }
}

void play(pullman::Context& context, const Options& options) {
  pullman::PeerId peer = pullman::kAnyPeer;
  if (options.address.empty()) {
    wait_idle(context, options, peer, "alone");
    answer_pings(context, options);
  } else {
    peer = context.connect(options.address);
    send_pings(context, options, peer);
  }
  print({{"event", "played"}});
  wait_idle(context, options, peer, "connected");
}

int run(const Options& options) {
  pullman::Context context;
  print({{"event", "listening"}, {"can_sleep", context.wait_fd() >= 0}});
  pullman::Status status = pullman::Status::kOk;
  try {
    play(context, options);
  } catch (const PeerLost& lost) {
    status = lost.status;
  }
  const double before = processor_seconds();
  const auto began = Clock::now();
  const pullman::Status closed = context.close();
  const Seconds took = Clock::now() - began;
  const pullman::Stats stats = context.stats();
  print({{"event", "done"},
         {"status", pullman::name(status)},
         {"closed", pullman::name(closed)},
         {"close_s", took.count()},
         {"close_processor_s", processor_seconds() - before},
         {"processor_s", processor_seconds()},
         {"counters",
          {{"retransmits", stats.retransmits},
           {"probes", stats.probes_sent},
           {"memory_packets_sent", stats.memory_packets_sent}}}});
  if (status != pullman::Status::kOk) return 3;
  return closed == pullman::Status::kOk ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One side of a test of sleeping.");
  app.add_option("address", options.address);
  app.add_option("--idle", options.idle_s);
  app.add_option("--rounds", options.rounds);
  app.add_option("--pause-ms", options.pause_ms);
  app.add_option("--patience", options.patience_s);
  app.add_flag("--own-loop", options.own_loop);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sleeper: %s\n", error.what());
    return 1;
  }
}
