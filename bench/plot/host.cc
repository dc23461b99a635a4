#include "plot/host.h"

#include <algorithm>

#include "plot/road_port.h"

namespace pullman::lab {
namespace {

// A turn of the loop, beside its packets.
constexpr Duration kTurn = std::chrono::nanoseconds(500);

// Few peers, so that each may have much under way: the lab is about the road, not about allowances.
Config config_of(const Scenario& scenario) {
  Config config;
  config.max_peers = 4 * scenario.senders + 1;  // a quarter may call at once
  config.receive_packets = scenario.road.socket_packets;
  return config;
}

}  // namespace

Host::Host(Road& road, std::size_t number, const Scenario& scenario, std::uint64_t seed)
    : road_(road),
      number_(number),
      scenario_(scenario),
      random_(seed * 1000 + number),
      buffer_(scenario.message_bytes) {
  std::vector<engine::NicPorts> nics(1);
  nics[0].device.driver = nics[0].device.name = "lab";
  nics[0].command = road.open(number, Channel::kCommand);
  nics[0].data = road.open(number, Channel::kData);
  engine_ = std::make_unique<engine::Engine>(
      config_of(scenario), std::move(nics),
      engine::Identity{KeyedRandom::key_from_seed(random_.next()), number + 1}, road.now());
  plan_stall(road.now());
}

Host::~Host() {
  engine_->abort();
}

void Host::send_to(const Host& to, std::size_t flow, Instant start) {
  flows_.push_back({.to = &to, .tag = flow, .start = start});
}

engine::LinkView Host::link(std::size_t flow) const {
  const auto at = std::find_if(flows_.begin(), flows_.end(),
                               [&](const Flow& other) { return other.tag == flow; });
  return engine_->inspector().link(at->peer).value_or(engine::LinkView{});
}

Instant Host::next_start() const {
  Instant next = kNever;
  for (const Flow& flow : flows_) {
    if (flow.sends.empty()) next = std::min(next, flow.start);
  }
  return next;
}

void Host::begin_flows(Instant now) {
  for (Flow& flow : flows_) {
    if (!flow.sends.empty() || flow.start > now) continue;
    const auto place = static_cast<std::uint32_t>(2 * flow.to->number_);
    flow.peer = engine_->connect(now, address_of(place)).peer;
    for (std::size_t i = 0; i < scenario_.messages; ++i) {
      flow.sends.push_back(std::make_unique<Request>());
    }
  }
}

void Host::take(std::size_t senders, std::vector<std::uint64_t>& taken) {
  taken_ = &taken;
  for (std::size_t i = 0; i < senders * scenario_.messages; ++i) {
    receives_.push_back(std::make_unique<Request>());
    engine_->matching().receive(road_.now(), kAnyPeer, 0, ~Tag{0}, buffer_, *receives_.back());
  }
}

Instant Host::wake() const {
  const Instant start = next_start();
  const bool begun = std::any_of(flows_.begin(), flows_.end(),
                                 [](const Flow& flow) { return !flow.sends.empty(); });
  if (polls_infrequently()) return begun ? ready_at_ : start;
  const Instant due = road_.has_work(number_) ? road_.now() : engine_->next_deadline();
  const Instant first = std::min(due, start);
  return first == kNever ? kNever : std::max({first, ready_at_, road_.now()});
}

void Host::turn(Instant now) {
  road_.begin_turn(number_);
  begin_flows(now);
  // Whoever is idle is woken by what arrives.
  if (ready_at_ < now) engine_->watched(now);
  engine_->progress(now);
  while (engine_->accept()) {
  }
  run_program(now);
  ready_at_ = now + kTurn + road_.spent(number_);
  if (polls_infrequently()) ready_at_ = std::max(ready_at_, now + scenario_.look_every);
  if (ready_at_ < stall_at_) return;
  ready_at_ += scenario_.stall_for;
  plan_stall(ready_at_);
}

void Host::run_program(Instant now) {
  for (Flow& flow : flows_) {
    for (auto& request : flow.sends) {
      if (request->done()) engine_->sending().send(now, flow.peer, flow.tag, buffer_, *request);
    }
  }
  for (auto& request : receives_) {
    if (!request->done()) continue;
    (*taken_)[request->tag()] += request->length();
    engine_->matching().receive(now, kAnyPeer, 0, ~Tag{0}, buffer_, *request);
  }
}

// Evenly between never and twice the mean.
void Host::plan_stall(Instant from) {
  if (scenario_.stall_every.count() == 0) return;
  const auto span = static_cast<std::uint64_t>(2 * scenario_.stall_every.count());
  stall_at_ = from + Duration(static_cast<Duration::rep>(random_.below(span)));
}

}  // namespace pullman::lab
