#include "plot/host.h"

#include <algorithm>

#include "plot/road_port.h"

namespace pullman::lab {
namespace {

// A turn of the loop, and a packet in or out of it: kernel UDP with segmentation offload.
constexpr Duration kTurn = std::chrono::nanoseconds(500);
constexpr Duration kPacket = std::chrono::nanoseconds(200);

std::uint64_t packets(const nic::Port& port) {
  return port.counters().sent + port.counters().received;
}

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
  command_ = nics[0].command.get();
  data_ = nics[0].data.get();
  engine_ = std::make_unique<engine::Engine>(
      config_of(scenario), std::move(nics),
      engine::Identity{KeyedRandom::key_from_seed(random_.next()), number + 1}, road.now());
  plan_stall(road.now());
}

Host::~Host() {
  engine_->abort();
}

void Host::send_to(const Host& to, Instant start) {
  to_ = &to;
  start_ = start;
}

void Host::take(std::size_t senders, std::vector<std::uint64_t>& taken) {
  taken_ = &taken;
  for (std::size_t i = 0; i < senders * scenario_.messages; ++i) {
    requests_.push_back(std::make_unique<Request>());
    engine_->receive(road_.now(), kAnyPeer, 0, ~Tag{0}, buffer_, *requests_.back());
  }
}

Instant Host::wake() const {
  if (to_ != nullptr) return start_;
  if (looks_seldom()) return ready_at_;
  const Instant due = road_.has_work(number_) ? road_.now() : engine_->next_deadline();
  return due == kNever ? kNever : std::max({due, ready_at_, road_.now()});
}

void Host::turn(Instant now) {
  const std::uint64_t before = packets(*command_) + packets(*data_);
  if (to_ != nullptr) {
    peer_ = engine_->connect(now, address_of(static_cast<std::uint32_t>(2 * to_->number_))).peer;
    for (std::size_t i = 0; i < scenario_.messages; ++i) {
      requests_.push_back(std::make_unique<Request>());
    }
    to_ = nullptr;
  }
  // Whoever is idle is woken by what arrives.
  if (ready_at_ < now) engine_->watched(now);
  engine_->progress(now);
  while (engine_->accept()) {
  }
  run_program(now);
  const std::uint64_t moved = packets(*command_) + packets(*data_) - before;
  ready_at_ = now + kTurn + static_cast<Duration::rep>(moved) * kPacket;
  if (looks_seldom()) ready_at_ = std::max(ready_at_, now + scenario_.look_every);
  if (ready_at_ < stall_at_) return;
  ready_at_ += scenario_.stall_for;
  plan_stall(ready_at_);
}

void Host::run_program(Instant now) {
  for (auto& request : requests_) {
    if (!request->done()) continue;
    if (taken_ == nullptr) {
      engine_->send(now, peer_, number_, buffer_, *request);
      continue;
    }
    (*taken_)[request->tag()] += request->length();
    engine_->receive(now, kAnyPeer, 0, ~Tag{0}, buffer_, *request);
  }
}

// Evenly between never and twice the mean.
void Host::plan_stall(Instant from) {
  if (scenario_.stall_every.count() == 0) return;
  const auto span = static_cast<std::uint64_t>(2 * scenario_.stall_every.count());
  stall_at_ = from + Duration(static_cast<Duration::rep>(random_.below(span)));
}

}  // namespace pullman::lab
