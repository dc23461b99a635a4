#include "rail_verdict.h"

#include <fmt/format.h>

namespace {

using pullman::RailFinding;
using pullman::RailReason;
using pullman::RailState;
using pullman::RailView;

double milliseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count() / 1000) / 1e3;
}

// Why it is down.
const char* meaning(RailReason reason) {
  switch (reason) {
    case RailReason::kResolve:
    case RailReason::kNew:
      return "unreachable: no answer to any question";
    case RailReason::kTold:
    case RailReason::kSilentThere:
      return "one way at most: the other end has no answer from us";
    case RailReason::kSilent:
      return "one way at most: we have no answer from it";
    case RailReason::kAnswers:
    case RailReason::kLinkDown:
    case RailReason::kAddressGone:
    case RailReason::kLossy:
    case RailReason::kFlapping:
    case RailReason::kFailed:
    case RailReason::kOperator:
      break;
  }
  return "not usable";
}

// What the state means.
const char* meaning(const RailView& rail) {
  switch (rail.state) {
    case RailState::kUp:
      return "carries messages";
    case RailState::kSuspect:
      return "no answer just now";
    case RailState::kProbing:
      return "answers, but not yet often enough in a row";
    case RailState::kDrained:
      return rail.reason == RailReason::kOperator
                 ? "not used: an operator said so"
                 : "kept out since it failed, until it is restored";
    case RailState::kDown:
      break;
  }
  return meaning(rail.reason);
}

}  // namespace

bool is_fine(const RailView& rail) {
  return rail.memory || (rail.state == RailState::kUp && rail.check == RailFinding::kFine);
}

std::string verdict(const RailView& rail) {
  if (rail.memory) return "carries messages: the peer is on this host";
  const std::string now = fmt::format("{} ({})", meaning(rail), name(rail.reason));
  if (rail.check == RailFinding::kNotChecked) return now + "; not checked";
  return fmt::format("{}; {}, {:.0f} ms ago: {}", now, name(rail.check),
                     milliseconds(rail.checked_ago), to_sentence(rail.check));
}

void add_verdict(nlohmann::ordered_json& row, const RailView& rail) {
  const bool checked = rail.check != RailFinding::kNotChecked;
  row["state"] = name(rail.state);
  row["reason"] = name(rail.reason);
  row["finding"] = name(rail.check);
  row["meaning"] = to_sentence(rail.check);
  row["checked_ms_ago"] =
      checked ? nlohmann::ordered_json(milliseconds(rail.checked_ago)) : nlohmann::ordered_json();
  row["verdict"] = verdict(rail);
}
