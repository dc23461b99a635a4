#include "rail_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace perf {

namespace {

constexpr std::chrono::milliseconds kLookEvery{1};

double milliseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count() / 1000) / 1e3;
}

bool left(pullman::RailState state) {
  return state == pullman::RailState::kDown || state == pullman::RailState::kDrained;
}

}  // namespace

RailWatch::RailWatch(pullman::Context& context, pullman::PeerId peer,
                     std::chrono::milliseconds every)
    : context_(context), peer_(peer), every_(every) {}

void RailWatch::start(Clock::time_point now) {
  start_ = now;
  next_print_ = now + every_;
  for (const pullman::RailView& view : context_.rails(peer_)) {
    if (view.number < kMaxRails) seen_[view.number] = {view, view, true};
  }
}

void RailWatch::look(Clock::time_point now) {
  if (now < next_look_) return;
  next_look_ = now + kLookEvery;
  sample(now);
  if (every_.count() == 0 || now < next_print_) return;
  next_print_ += every_;
  print(now);
}

void RailWatch::stop(Clock::time_point now) {
  sample(now);
  for (const Seen& seen : seen_) {
    if (!seen.known) continue;
    pullman::RailView view = seen.now;
    view.bytes_sent -= seen.first.bytes_sent;
    view.packets_sent -= seen.first.packets_sent;
    view.packets_lost -= seen.first.packets_lost;
    view.evacuated -= seen.first.evacuated;
    view.times_left -= seen.first.times_left;
    rails_.push_back(view);
  }
}

void RailWatch::sample(Clock::time_point now) {
  for (const pullman::RailView& view : context_.rails(peer_)) {
    if (view.number < kMaxRails) note(now, view);
  }
  while (const auto event = context_.take_rail_event(peer_)) {
    if (events_.size() < kMaxChanges) events_.push_back(*event);
  }
}

void RailWatch::note(Clock::time_point now, const pullman::RailView& view) {
  Seen& seen = seen_[view.number];
  // A rail that is new to us has sent nothing before.
  if (!seen.known) seen.first = pullman::RailView{};
  const bool changed =
      !seen.known || view.state != seen.now.state || view.reason != seen.now.reason;
  if (changed && changes_.size() < kMaxChanges) {
    changes_.push_back(
        {std::max(start_, now - view.in_state), view.number, view.state, view.reason});
  }
  const std::uint64_t before = seen.known ? seen.now.bytes_sent : 0;
  if (view.bytes_sent > before) note_sent(now, view.number, view.bytes_sent - before);
  seen.now = view;
  seen.known = true;
}

void RailWatch::note_sent(Clock::time_point now, unsigned rail, std::uint64_t bytes) {
  const auto index = static_cast<std::size_t>(std::max(Clock::duration(0), now - start_) / kBucket);
  if (index >= kMaxBuckets) return;
  if (sent_[rail].size() <= index) sent_[rail].resize(index + 1);
  sent_[rail][index] += bytes;
  Clock::time_point& last = last_sent_[rail];
  if (last == Clock::time_point{}) last = start_;
  if (now - last > 2 * kLookEvery) pauses_[rail].push_back({last, now});
  last = now;
}

std::optional<Clock::time_point> RailWatch::first_sent(unsigned rail,
                                                       Clock::time_point since) const {
  if (rail >= kMaxRails || last_sent_[rail] <= since) return std::nullopt;
  for (const Pause& pause : pauses_[rail]) {
    if (pause.from <= since && since < pause.to) return pause.to;
  }
  return since;
}

std::optional<Clock::time_point> RailWatch::first_left(unsigned rail,
                                                       Clock::time_point since) const {
  for (const RailChange& change : changes_) {
    if (change.rail == rail && change.at >= since && left(change.state)) return change.at;
  }
  return std::nullopt;
}

void RailWatch::print(Clock::time_point now) {
  nlohmann::ordered_json line = {{"at_ms", milliseconds(now - start_)}};
  line["rails"] = nlohmann::ordered_json::array();
  for (const Seen& seen : seen_) {
    if (!seen.known) continue;
    line["rails"].push_back({{"rail", seen.now.number},
                             {"nic", seen.now.nic},
                             {"state", name(seen.now.state)},
                             {"reason", name(seen.now.reason)},
                             {"bytes", seen.now.bytes_sent - seen.first.bytes_sent}});
  }
  put_line(line.dump());
}

nlohmann::ordered_json to_json(const pullman::RailView& rail) {
  return {{"rail", rail.number},
          {"nic", rail.nic},
          {"local", rail.local},
          {"remote", rail.remote},
          {"stream", rail.stream},
          {"via", rail.via},
          {"state", name(rail.state)},
          {"reason", name(rail.reason)},
          {"in_state_ms", milliseconds(rail.in_state)},
          {"rtt_us", milliseconds(rail.rtt * 1000)},
          {"packet_bytes", rail.packet_bytes},
          {"bytes", rail.bytes_sent},
          {"packets", rail.packets_sent},
          {"packets_lost", rail.packets_lost},
          {"evacuated", rail.evacuated},
          {"times_left", rail.times_left}};
}

nlohmann::ordered_json to_json(const pullman::RailEvent& event) {
  return {{"rail", event.number},         {"nic", event.nic},
          {"carries", event.carries},     {"state", name(event.state)},
          {"reason", name(event.reason)}, {"changes", event.changes}};
}

std::string rail_table(const std::vector<pullman::RailView>& rails) {
  std::string text =
      fmt::format("{:>6} {:<10} {:<8} {:>12} {:>10} {:>8} {:>10} {:>5}  {}\n", "rail", "NIC",
                  "state", "MB sent", "packets", "lost", "evacuated", "left", "since, and why");
  for (const pullman::RailView& rail : rails) {
    text += fmt::format("{:>6} {:<10} {:<8} {:>12.2f} {:>10} {:>8} {:>10} {:>5}  {:.1f} ms: {}\n",
                        rail.number, rail.nic, name(rail.state),
                        static_cast<double>(rail.bytes_sent) / 1e6, rail.packets_sent,
                        rail.packets_lost, rail.evacuated, rail.times_left,
                        milliseconds(rail.in_state), name(rail.reason));
  }
  return text;
}

}  // namespace perf
