#include "peer_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "no_answer.h"
#include "pullman/pullman.h"
#include "rail_verdict.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using pullman::RailReason;
using pullman::RailState;
using pullman::RailView;

// Rails that have just begun are asked for the first time.
constexpr std::chrono::milliseconds kAfterAnswer{50};
// A peer on this host is offered memory when its check begins, and joins it when it runs next.
constexpr std::chrono::milliseconds kForMemory{200};

template <typename Done>
bool progress_until(pullman::Context& context, std::chrono::milliseconds patience, Done done) {
  const Clock::time_point end = Clock::now() + patience;
  while (!done()) {
    if (Clock::now() > end) return false;
    if (context.progress() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

bool decided(const RailView& rail) {
  return rail.state == RailState::kUp || rail.state == RailState::kDrained ||
         rail.reason == RailReason::kResolve || rail.reason == RailReason::kLinkDown ||
         rail.reason == RailReason::kAddressGone;
}

Json to_json(const RailView& rail) {
  Json row{{"rail", rail.number},
           {"nic", rail.nic},
           {"local", rail.local},
           {"remote", rail.remote},
           {"stream", rail.stream},
           {"via", rail.via},
           {"rtt_us", static_cast<double>(rail.rtt.count()) / 1e3},
           {"packet_bytes", rail.packet_bytes}};
  add_verdict(row, rail);
  return row;
}

void print(const std::vector<RailView>& rails, const std::string& why) {
  if (!why.empty()) fmt::print("{}\n", why);
  fmt::print("{:>4}  {:<10}  {:<24}  {:<24}  {:<8}  {:>8}  {:>7}  {}\n", "rail", "NIC", "from",
             "to", "state", "rtt us", "packet", "verdict");
  for (const RailView& rail : rails) {
    fmt::print("{:>4}  {:<10}  {:<24}  {:<24}  {:<8}  {:>8.1f}  {:>7}  {}\n", rail.number, rail.nic,
               rail.local, rail.remote, name(rail.state),
               static_cast<double>(rail.rtt.count()) / 1e3, rail.packet_bytes, verdict(rail));
    if (!rail.via.empty()) fmt::print("      relayed by {}\n", rail.via);
  }
}

}  // namespace

int report_peer(const PeerQuestion& question, std::vector<RailView>& seen) {
  pullman::Context context;
  const pullman::PeerId peer = context.connect(question.address);
  if (context.is_self(peer)) {
    throw pullman::Error(
        pullman::Status::kInvalidArgument,
        fmt::format("{} is this process itself: name the other's address", question.address));
  }
  const bool met = progress_until(context, question.patience, [&] {
    return context.peer_state(peer) != pullman::PeerState::kConnecting;
  });
  if (!met || context.peer_state(peer) != pullman::PeerState::kConnected) {
    const pullman::Status why = context.peer_status(peer);
    throw pullman::Error(pullman::Status::kUnreachable,
                         fmt::format("{}: {}", question.address,
                                     why == pullman::Status::kOk ? kNoAnswer : to_sentence(why)));
  }
  progress_until(context, kAfterAnswer, [] { return false; });
  progress_until(context, question.patience, [&] {
    const auto rails = context.rails(peer);
    return std::all_of(rails.begin(), rails.end(), decided);
  });
  // What stands when the patience is over is the result.
  context.check_rails(peer, question.patience);
  progress_until(context, kForMemory, [&] {
    const auto rails = context.rails(peer);
    return std::any_of(rails.begin(), rails.end(), [](const RailView& one) { return one.memory; });
  });

  const std::vector<RailView> rails = context.rails(peer);
  seen = rails;
  const std::string why = context.explain_rails(peer);
  if (question.json) {
    Json out{{"peer", question.address}, {"pairing", why}, {"rails", Json::array()}};
    for (const RailView& rail : rails) out["rails"].push_back(to_json(rail));
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    print(rails, why);
  }
  context.close(question.patience);
  return std::all_of(rails.begin(), rails.end(), is_fine) ? 0 : 1;
}
