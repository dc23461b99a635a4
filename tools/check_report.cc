#include "check_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <thread>

#include "info/drawing.h"
#include "info/job_picture.h"
#include "nic/shared_subnet.h"
#include "no_answer.h"
#include "pullman/pullman.h"
#include "rail_verdict.h"

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using pullman::Context;
using pullman::RailCheck;
using pullman::RailFinding;
using pullman::RailView;

// One process of the job.
struct Target {
  std::string address;
  std::optional<pullman::PeerId> peer;
  std::optional<std::vector<RailCheck>> rails;  // once they have been checked
  std::vector<RailView> views;                  // of the same, as they were when that ended
  std::string why;                              // it was not reached; empty: it was

  bool reached() const { return why.empty(); }
  bool fine() const {
    return reached() && std::all_of(rails->begin(), rails->end(), [](const RailCheck& rail) {
             return rail.finding == RailFinding::kFine;
           });
  }
};

Target begin(Context& context, const CheckQuestion& question, const std::string& address) {
  Target target{.address = address, .peer = {}, .rails = {}, .views = {}, .why = {}};
  try {
    target.peer = context.connect(address);
    const auto status = context.begin_check(*target.peer, question.patience);
    if (status != pullman::Status::kOk) target.why = to_sentence(status);
  } catch (const pullman::Error& error) {
    target.why = error.what();
  }
  return target;
}

void finish(Context& context, Target& target) {
  if (!target.rails || !target.reached()) return;
  target.views = context.rails(*target.peer);
  target.views.resize(target.rails->size());
  for (std::size_t i = 0; i < target.views.size(); ++i) {
    target.views[i].check = (*target.rails)[i].finding;
  }
  const auto status = context.peer_status(*target.peer);
  if (status != pullman::Status::kOk) {
    target.why = to_sentence(status);
  } else if (context.peer_state(*target.peer) != pullman::PeerState::kConnected) {
    target.why = kNoAnswer;
  }
}

std::vector<Target> check_all(Context& context, const CheckQuestion& question) {
  std::vector<Target> targets;
  for (const std::string& address : question.addresses) {
    targets.push_back(begin(context, question, address));
  }
  // Each check ends by itself; the clock is for a peer whose handle has ended.
  const Clock::time_point end = Clock::now() + 2 * question.patience;
  const auto waits = [](const Target& target) { return target.reached() && !target.rails; };
  while (std::any_of(targets.begin(), targets.end(), waits) && Clock::now() < end) {
    if (context.progress() == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    for (Target& target : targets) {
      if (!waits(target)) continue;
      target.rails = context.check_result(*target.peer);
      finish(context, target);
    }
  }
  for (Target& target : targets) {
    if (waits(target)) target.why = kNoAnswer;
  }
  return targets;
}

Json to_json(const RailCheck::Passed& passed) {
  return {{"bytes", passed.bytes}, {"there", passed.there}, {"back", passed.back}};
}

Json to_json(const RailCheck& rail, const RailView& view) {
  Json row{
      {"rail", rail.number}, {"nic", rail.nic}, {"local", rail.local}, {"remote", rail.remote}};
  add_verdict(row, view);
  row["smallest"] = to_json(rail.smallest);
  row["largest"] = to_json(rail.largest);
  return row;
}

Json to_json(const Target& target) {
  Json out{{"peer", target.address},
           {"reached", target.reached()},
           {"why_not", target.reached() ? Json() : Json(target.why)},
           {"fine", target.fine()},
           {"rails", Json::array()}};
  if (!target.reached()) return out;
  for (std::size_t i = 0; i < target.views.size(); ++i) {
    out["rails"].push_back(to_json((*target.rails)[i], target.views[i]));
  }
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

Json map_of(const Context& context, const std::vector<Target>& targets) {
  Json out{{"host", host_name()},
           {"address", context.address()},
           {"driver", context.driver()},
           {"fine", std::all_of(targets.begin(), targets.end(),
                                [](const Target& target) { return target.fine(); })},
           {"advice", pullman::nic::subnet_advices(pullman::nic::list_interfaces())},
           {"unreached", Json::array()},
           {"peers", Json::array()}};
  for (const Target& target : targets) {
    if (!target.reached()) out["unreached"].push_back(target.address);
    out["peers"].push_back(to_json(target));
  }
  return out;
}

std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_map(const std::string& file, const Json& map) {
  std::ofstream out(file);
  out << text_of(map) << std::flush;
  if (!out) throw std::runtime_error(fmt::format("cannot write {}: {}", file, strerror(errno)));
}

// "both ways", "there", "back", "no"
const char* ways(const RailCheck::Passed& passed) {
  if (passed.there) return passed.back ? "both ways" : "there";
  return passed.back ? "back" : "no";
}

void print(const std::vector<Target>& targets) {
  fmt::print("{:<24}  {:>4}  {:<10}  {:<24}  {:<24}  {:<8}  {:<15}  {:<15}  {}\n", "peer", "rail",
             "NIC", "from", "to", "state", "smallest", "largest", "verdict");
  for (const Target& target : targets) {
    if (!target.reached()) {
      fmt::print("{:<24}  {:>4}  not reached: {}\n", target.address, "-", target.why);
      continue;
    }
    for (std::size_t i = 0; i < target.views.size(); ++i) {
      const RailCheck& rail = (*target.rails)[i];
      fmt::print("{:<24}  {:>4}  {:<10}  {:<24}  {:<24}  {:<8}  {:>5} {:<9}  {:>5} {:<9}  {}\n",
                 target.address, rail.number, rail.nic, rail.local, rail.remote,
                 name(target.views[i].state), rail.smallest.bytes, ways(rail.smallest),
                 rail.largest.bytes, ways(rail.largest), verdict(target.views[i]));
    }
  }
}

}  // namespace

int report_check(const CheckQuestion& question) {
  Context context;
  const std::vector<Target> targets = check_all(context, question);
  const Json map = map_of(context, targets);
  if (question.json) {
    fmt::print("{}", text_of(map));
  } else {
    print(targets);
    for (const auto& advice : map["advice"]) fmt::print("{}\n", advice.get<std::string>());
  }
  if (!question.map.empty()) write_map(question.map, map);
  if (!question.svg.empty()) info::draw(info::job_picture({nlohmann::json(map)}), question.svg);
  context.close(question.patience);
  return map["fine"].get<bool>() ? 0 : 1;
}
