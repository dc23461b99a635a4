// pullman-crowd: what it costs a process to have many idle peers. Half round trips of short
// messages with one of two peers, over two contexts in turn: one has that peer only, the other has
// many more, which connected, exchanged a message, and fell silent. Over the udp driver, on the
// loopback.
//
// The two that play are processes of their own. The crowd is made by others, which are gone when
// the measurement begins: they leave without a word, so that nobody knows.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pullman/pullman.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr pullman::Tag kGreeting = 1;
constexpr pullman::Tag kPing = 2;
constexpr pullman::Tag kPong = 3;
constexpr pullman::Tag kNext = 4;      // the other context's turn; an empty one ends the game
constexpr std::size_t kCallers = 500;  // contexts of one process of the crowd
constexpr std::chrono::seconds kPatience{60};

// Below those that the kernel gives to who asks for any; two for each caller.
struct Ports {
  std::uint16_t next = 0;
  std::uint16_t end = 0;
};
constexpr std::size_t kMaxPeers = 10000;
Ports ports_from(std::size_t caller) {
  const std::size_t first = 12000 + 2 * caller;
  return {static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(first + 2 * kCallers)};
}

struct Options {
  std::size_t peers = 10000;
  int rounds = 21;      // of each context
  int messages = 2000;  // each way in a round
};

pullman::Config config_for(std::size_t peers) {
  pullman::Config config = pullman::Config::from_environment();
  config.driver = "udp";
  config.nics = {"127.0.0.1"};
  config.max_peers = std::max<std::size_t>(peers, 16);
  return config;
}

void finish(pullman::Context& context, pullman::Request& request) {
  if (const auto status = context.wait(request, kPatience); status != pullman::Status::kOk) {
    throw std::runtime_error(pullman::to_sentence(status));
  }
}

// Runs in a process of its own, and says by its exit code whether that went well.
template <typename Run>
pid_t in_child(Run run) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-crowd: {}\n", error.what());
    _exit(1);
  }
  _exit(0);
}

bool ended_well(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Longer than an ACK waits for company, after the last packet: a process that did not run for a
// while has a question to answer first. Who is gone when he is asked is taken for dead.
void let_acks_leave(pullman::Context& context) {
  auto end = Clock::now() + std::chrono::milliseconds(1);
  for (int turns = 0; turns < 1000 || Clock::now() < end; ++turns) {
    if (context.progress() == 0) continue;
    turns = 0;
    end = Clock::now() + std::chrono::milliseconds(1);
  }
}

// Until all that was sent has arrived.
void deliver(pullman::Context& context) {
  do {
    context.progress();
  } while (context.stats().packets_in_flight > 0);
}

// On the first of these ports that nobody has. A port of its own, and not any: the kernel would
// give those of gone callers again, and who calls from the address of another takes his place.
std::unique_ptr<pullman::Context> open_at(pullman::Config config, Ports& ports) {
  for (;;) {
    config.port = ports.next++;
    try {
      return std::make_unique<pullman::Context>(config);
    } catch (const pullman::Error&) {
      if (ports.next == ports.end) throw;
    }
  }
}

// So many contexts connect and send a greeting. None is closed: the process ends under them.
void greet(const std::string& address, std::size_t callers, Ports ports) {
  pullman::Config config = config_for(1);
  config.send_packets = 64;
  config.receive_packets = 16;
  config.unexpected_bytes = 1 << 20;
  for (std::size_t i = 0; i < callers; ++i) {
    auto* context = open_at(config, ports).release();
    std::array<std::byte, 64> bytes{};
    pullman::Request sending, answer;
    const auto peer = context->connect(address);
    context->receive(peer, kGreeting, 0, bytes, answer);
    context->send(peer, kGreeting, bytes, sending);
    finish(*context, answer);
    finish(*context, sending);
    let_acks_leave(*context);
  }
}

void meet(pullman::Context& context, std::size_t peers) {
  const std::string address = context.address();
  for (std::size_t met = 0; met < peers;) {
    const std::size_t more = std::min(kCallers, peers - met);
    const pid_t child = in_child([&] { greet(address, more, ports_from(met)); });
    for (const std::size_t end = met + more; met < end; ++met) {
      std::array<std::byte, 64> bytes{};
      pullman::Request receiving, answer;
      context.receive(pullman::kAnyPeer, kGreeting, 0, bytes, receiving);
      finish(context, receiving);
      context.send(receiving.source(), kGreeting, bytes, answer);
      finish(context, answer);
    }
    deliver(context);
    if (!ended_well(child)) throw std::runtime_error("a process of the crowd failed");
  }
  if (context.stats().peers_connected != peers) {
    throw std::runtime_error(
        fmt::format("{} peers of {} are connected", context.stats().peers_connected, peers));
  }
}

// Answers pings, over the two contexts in turn, until that is over.
void partner(const std::array<std::string, 2>& addresses) {
  std::array<pullman::Context, 2> contexts{pullman::Context(config_for(1)),
                                           pullman::Context(config_for(1))};
  std::array<std::byte, 64> bytes{};
  std::array<pullman::PeerId, 2> peers;
  for (std::size_t i = 0; i < 2; ++i) {
    pullman::Request sending;
    peers[i] = contexts[i].connect(addresses[i]);
    contexts[i].send(peers[i], kGreeting, bytes, sending);
    finish(contexts[i], sending);
    deliver(contexts[i]);
  }
  for (std::size_t turn = 0;; turn = 1 - turn) {
    pullman::Context& context = contexts[turn];
    pullman::Request next, ping, pong;
    std::array<std::byte, 1> word{};
    context.receive(peers[turn], kNext, 0, word, next);
    while (!next.done()) {
      if (ping.done()) context.receive(peers[turn], kPing, 0, bytes, ping);
      context.progress();
      if (!ping.done()) continue;
      finish(context, pong);
      context.send(peers[turn], kPong, bytes, pong);
    }
    context.cancel(ping);
    finish(context, pong);
    let_acks_leave(context);
    if (next.length() == 0) break;
  }
  for (auto& context : contexts) context.close();
}

// One end of the game: a context, and who answers it.
struct Side {
  pullman::Context context;
  pullman::PeerId partner;
  std::vector<double> medians_us;

  void find_partner() {
    std::array<std::byte, 64> bytes{};
    pullman::Request receiving;
    context.receive(pullman::kAnyPeer, kGreeting, 0, bytes, receiving);
    finish(context, receiving);
    partner = receiving.source();
    let_acks_leave(context);
  }

  // The median half round trip of a round.
  double play(int messages, bool last) {
    std::array<std::byte, 64> bytes{};
    std::vector<double> half_us;
    pullman::Request ping, pong, next;
    for (int i = 0; i < messages; ++i) {
      const auto begin = Clock::now();
      context.receive(partner, kPong, 0, bytes, pong);
      context.send(partner, kPing, bytes, ping);
      finish(context, pong);
      half_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() /
                        2);
      finish(context, ping);
    }
    context.send(partner, kNext, {bytes.data(), last ? std::size_t{0} : 1}, next);
    finish(context, next);
    deliver(context);
    std::nth_element(half_us.begin(), half_us.begin() + messages / 2, half_us.end());
    return half_us[static_cast<std::size_t>(messages / 2)];
  }
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double resident_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Each process of the crowd has two sockets for each of its contexts.
void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void run(const Options& options) {
  raise_descriptor_limit();
  Side few{pullman::Context(config_for(1)), {}, {}};
  Side many{pullman::Context(config_for(options.peers)), {}, {}};
  const double before_mb = resident_mb();
  meet(many.context, options.peers - 1);
  const double after_mb = resident_mb();
  const std::array addresses{few.context.address(), many.context.address()};
  const pid_t child = in_child([&] { partner(addresses); });
  few.find_partner();
  many.find_partner();
  std::vector<double> ratios;
  for (int round = 0; round <= options.rounds; ++round) {
    const double alone = few.play(options.messages, false);
    const double crowded = many.play(options.messages, round == options.rounds);
    if (round == 0) continue;  // warm-up
    few.medians_us.push_back(alone);
    many.medians_us.push_back(crowded);
    ratios.push_back(crowded / alone);
  }
  few.context.close(std::chrono::seconds(1));
  many.context.close(std::chrono::seconds(0));  // the crowd does not answer
  if (!ended_well(child)) throw std::runtime_error("the partner failed");
  const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
  fmt::print("half round trip, 64 B, among 1 peer      {:8.3f} us\n", median(few.medians_us));
  fmt::print("half round trip, 64 B, among {:<6} peers {:7.3f} us\n", options.peers,
             median(many.medians_us));
  fmt::print("ratio {:.3f} ({:.3f} to {:.3f} in {} rounds)   <= 1.1\n", median(ratios), *least,
             *greatest, options.rounds);
  if (options.peers < 1000) return;  // lost in the rest
  fmt::print("resident memory: {:.0f} B for each idle peer, sockets' tables included\n",
             (after_mb - before_mb) * 1024 * 1024 / static_cast<double>(options.peers));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The round trip among many connected peers, over that among one.");
  app.add_option("--peers", options.peers, "connected to the crowded context")
      ->check(CLI::Range(std::size_t{2}, kMaxPeers))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "of each context, in turn")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--messages", options.messages, "each way, in a round")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    run(options);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pullman-crowd: {}\n", error.what());
    return 1;
  }
}
