// One side of an end-to-end test on a real kernel: sends a plan to its peer while it receives the
// peer's, and judges what came. Driven by test/kernel/soak.py. Prints lines of JSON.
//
// Exit code: 0 all well; 1 wrong (or set-up failed); 3 the peer was lost, `status` says how.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>

#include "pullman/pullman.h"
#include "traffic.h"

namespace {

struct Options {
  std::string address;  // of the peer; empty: wait for one
  std::uint64_t seed = 1;
  std::size_t send = 1000;
  std::size_t receive = 1000;
  std::size_t largest = 4u << 20;
  std::size_t rounds = 1;      // peers served one after the other, or connections made
  unsigned poll_every_ms = 0;  // 0: poll all the time
  double patience_s = 120;     // without end
  bool close_at_once = false;  // close() with the sends still under way
};

using Clock = std::chrono::steady_clock;

void print(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

void turn(pullman::Context& context, const Options& options) {
  if (context.progress() == 0) std::this_thread::yield();
  if (options.poll_every_ms != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options.poll_every_ms));
  }
}

pullman::PeerId meet(pullman::Context& context, const Options& options) {
  if (!options.address.empty()) return context.connect(options.address);
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.patience_s);
  while (Clock::now() < deadline) {
    turn(context, options);
    if (const auto peer = context.accept()) return *peer;
  }
  throw std::runtime_error("no peer came");
}

// Sends and receives until both are finished, or one failed. False if patience ran out.
bool run_traffic(pullman::Context& context, const Options& options, soak::Sender& sender,
                 soak::Receiver& receiver) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.patience_s);
  for (std::uint64_t turns = 1;; ++turns) {
    sender.pump();
    receiver.pump();
    turn(context, options);
    if (sender.status() != pullman::Status::kOk || receiver.status() != pullman::Status::kOk)
      return true;
    const bool sent = options.close_at_once ? sender.all_sent() : sender.finished();
    if (sent && receiver.finished()) return true;
    if (turns % 256 == 0 || options.poll_every_ms != 0) {
      if (Clock::now() > deadline) return false;
    }
  }
}

nlohmann::json counters(const pullman::Context& context) {
  const pullman::Stats stats = context.stats();
  return {{"messages_sent", stats.messages_sent},
          {"messages_received", stats.messages_received},
          {"packets_sent", stats.packets_sent},
          {"packets_received", stats.packets_received},
          {"retransmits", stats.retransmits},
          {"spurious", stats.spurious_retransmits},
          {"duplicates", stats.duplicate_packets},
          {"timeouts", stats.timeouts},
          {"dropped", stats.dropped_packets},
          {"unexpected", stats.unexpected_messages},
          {"receive_errors", stats.nic_receive_errors},
          {"send_errors", stats.nic_send_errors},
          {"overflows", stats.nic_receive_overflows},
          {"bursts_sent", stats.nic_bursts_sent},
          {"bursts_refused", stats.nic_bursts_refused},
          {"black_holes", stats.path_black_holes},
          {"path_probes", stats.path_probes_sent},
          {"memory_packets_sent", stats.memory_packets_sent}};
}

// "1372 of 1472": how long packets to the peer may be.
std::string packet_bytes(const pullman::Context& context) {
  const std::string dump = context.dump();
  const std::size_t begin = dump.find("packets of ");
  if (begin == std::string::npos) return "";
  const std::size_t number = begin + std::string_view("packets of ").size();
  return dump.substr(number, dump.find(" bytes", number) - number);
}

// One peer from meeting to parting. Returns the exit code.
int run_round(pullman::Context& context, const Options& options, std::size_t round) {
  const bool serves = options.address.empty();
  const std::uint64_t mine = options.seed * 2 + (serves ? 0 : 1);
  const std::uint64_t theirs = options.seed * 2 + (serves ? 1 : 0);
  const pullman::PeerId peer = meet(context, options);
  soak::Sender sender(context, peer, soak::make_plan(mine, options.send, options.largest));
  soak::Receiver receiver(context, peer, theirs,
                          soak::make_plan(theirs, options.receive, options.largest),
                          options.largest);
  print({{"round", round}, {"event", "met"}});
  const bool in_time = run_traffic(context, options, sender, receiver);
  pullman::Status status = sender.status();
  if (status == pullman::Status::kOk) status = receiver.status();
  const bool all_well = in_time && status == pullman::Status::kOk;

  receiver.cancel();
  const std::string packets = packet_bytes(context);
  const bool last = round + 1 == options.rounds;
  pullman::Status closed = pullman::Status::kOk;
  if (!in_time) std::fputs(context.dump().c_str(), stderr);
  // Ends every request, so that the slots may go.
  if (last || !in_time)
    closed = all_well ? context.close() : context.close(std::chrono::seconds(0));
  const auto deadline = Clock::now() + std::chrono::duration<double>(options.patience_s);
  while (!sender.finished() && Clock::now() < deadline) context.progress();

  // A receive that was being filled when the peer was lost has failed.
  const std::string verdict =
      all_well ? receiver.judge() : receiver.judge_part(soak::Receiver::Missing::kAnywhere);
  print({{"round", round},
         {"event", "done"},
         {"status", pullman::name(status)},
         {"in_time", in_time},
         {"received", receiver.received()},
         {"verdict", verdict},
         {"closed", pullman::name(closed)},
         {"packets", packets},
         {"counters", counters(context)}});
  if (!in_time || !verdict.empty() || (all_well && closed != pullman::Status::kOk)) return 1;
  return all_well ? 0 : 3;
}

int run(const Options& options) {
  pullman::Context context;
  print({{"event", "listening"}, {"address", context.address()}});
  int result = 0;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    result = run_round(context, options, round);
    if (result == 1) break;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("One side of an end-to-end test.");
  app.add_option("address", options.address);
  app.add_option("--seed", options.seed);
  app.add_option("--send", options.send);
  app.add_option("--receive", options.receive);
  app.add_option("--largest", options.largest);
  app.add_option("--rounds", options.rounds);
  app.add_option("--poll-every-ms", options.poll_every_ms);
  app.add_option("--patience", options.patience_s);
  app.add_flag("--close-at-once", options.close_at_once);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
