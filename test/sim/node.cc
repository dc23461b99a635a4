#include "sim/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/draw.h"
#include "sim/sim_port.h"

namespace pullman::sim {
namespace {

constexpr std::size_t kTurnsPerPoll = 64;
constexpr std::uint32_t kMaxIdleTurns = 20000;  // far more than any full send queue explains
constexpr Duration kLeastTurn = std::chrono::microseconds(1);
constexpr Duration kMaxBackoff = std::chrono::microseconds(50);

std::vector<engine::JobKey> job_keys_of(const NodePlan& plan) {
  std::vector<engine::JobKey> keys;
  for (const std::uint64_t number : plan.job_keys) {
    keys.emplace_back(KeyedRandom::key_from_seed(number));
  }
  return keys;
}

}  // namespace

Node::Node(Network& network, SharedMemory& memory, std::uint8_t host, const NodePlan& plan,
           std::uint64_t seed)
    : network_(network), memory_(memory), host_(host), plan_(plan), random_(seed), stops_(~seed) {}

Node::~Node() {
  if (alive()) end(true);
}

nic::Address Node::address() const {
  const Endpoint first{host_, Channel::kCommand};
  return address_of(first, plan_.command.address_kind, network_.generation(first));
}

std::optional<nic::Address> Node::address_to_call(const nic::Address& address) const {
  return relay_ == nullptr ? address : relay_->address_to_call(address);
}

bool Node::has_no_receives() const {
  const std::size_t posted = engine_->inspector().audit().receives_posted;
  return relay_ == nullptr ? posted == 0 : relay_->is_idle() && posted == relay::Relay::kArrivals;
}

void Node::boot() {
  network_.mute(host_, false);
  ++incarnation_;
  std::vector<engine::NicPorts> nics;
  while (nics.size() < nics_by_now()) {
    nics.push_back(open(static_cast<std::uint8_t>(nics.size())));
  }
  relay_.reset();
  if (!plan_.relay.empty()) {
    std::string why;
    relay_ = std::make_unique<relay::Relay>(*relay::read_routes(plan_.relay, why), plan_.config,
                                            nics.front().command->address());
    relay_slot_ = nics.size();
    nics.push_back(relay_->open(nics.front()));
  }
  memory_.add_process(process());
  pairs_.emplace(memory_, process(), plan_.memory);
  engine_ = std::make_unique<engine::Engine>(
      plan_.config, std::move(nics),
      engine::Identity{KeyedRandom::key_from_seed(random_.next()), identity(), &*pairs_,
                       plan_.protection, job_keys_of(plan_)},
      local_now());
  if (relay_ != nullptr) relay_->attach(local_now(), *engine_);
  idle_turns_ = 0;
  took_nothing_ = in_mid_turn_ = closing_ = close_begun_ = false;
  touched();
}

void Node::join() {
  if (joined_ == plan_.late) return;
  const std::size_t nic = nics_by_now();
  ++joined_;
  if (alive()) set_nic(static_cast<std::uint8_t>(nic));
}

void Node::move(std::uint8_t nic) {
  if (nic >= nics_by_now()) return;
  network_.renumber({host_, nic});
  if (alive()) set_nic(nic);
}

void Node::set_nic(std::uint8_t nic) {
  const bool behind_relay = relay_ != nullptr && nic >= relay_slot_;
  engine_->set_nic(local_now(), behind_relay ? nic + 1u : nic, open(nic));
  touched();
}

std::string Node::name_of(std::size_t nic) const {
  if (nic > 0) nic = plan_.more[nic - 1].address_of.value_or(nic);
  return nic == 0 ? fmt::format("sim{}", host_) : fmt::format("sim{}.{}", host_, nic);
}

engine::NicPorts Node::open(std::uint8_t nic) {
  NicPlan plan{.command = plan_.command, .data = plan_.data, .mbps = plan_.mbps};
  if (nic > 0) plan = plan_.more[nic - 1u];
  if (alive()) {
    const std::size_t most = engine_->longest_packet();
    plan.command.packet_bytes = std::min(plan.command.packet_bytes, most);
    plan.data.packet_bytes = std::min(plan.data.packet_bytes, most);
  }
  engine::NicPorts ports;
  ports.command = network_.open({host_, Channel::kCommand, nic}, plan.command);
  ports.data = network_.open({host_, Channel::kData, nic}, plan.data);
  ports.device.driver = "sim";
  ports.device.name = name_of(nic);
  ports.device.address = nic::with_port(ports.command->address(), 0);
  ports.device.packet_bytes = plan.data.packet_bytes;
  ports.device.mbps = plan.mbps;
  ports.device.stream = plan.stream;
  return ports;
}

void Node::restore_rails() {
  for (std::uint8_t nic = 0; nic < plan_.nics(); ++nic) {
    engine_->restore_rail(local_now(), name_of(nic));
  }
  touched();
}

void Node::end(bool quietly) {
  network_.mute(host_, quietly);
  const auto end = [this] {
    engine_->abort();
    engine_.reset();
  };
  quietly ? memory_.keep_as_they_are(process(), end) : end();
  memory_.remove_process(process());
  network_.mute(host_, true);
  deadline_ = kNever;
  own_wake_ = kNever;
}

void Node::begin_close() {
  closing_ = true;
  if (relay_ != nullptr) engine_->neighbours().disconnect_relayed(local_now());
  go_on_closing();
  touched();
}

// The relay sends nothing once the engine closes.
void Node::go_on_closing() {
  if (!closing_ || close_begun_) return;
  if (relay_ != nullptr && engine_->neighbours().any_relayed()) return;
  engine_->begin_close(local_now());
  close_begun_ = true;
}

void Node::jump_clock(Duration by) {
  clock_offset_ += by;
  if (alive()) touched();
}

// Runs are not before the gap between turns is over, in a stall, or between polls.
Instant Node::earliest_run(Instant at) const {
  at = std::max({at, stalled_until_, last_turn_ + plan_.turn_gap});
  if (plan_.poll_interval.count() == 0) return at;
  const auto interval = plan_.poll_interval.count();
  const auto since = std::max(at, last_turn_ + Duration(1)).time_since_epoch().count();
  return Instant(Duration((since + interval - 1) / interval * interval));
}

Instant Node::wake() const {
  if (!alive()) return kNever;
  if (plan_.poll_interval.count() != 0) return earliest_run(network_.now());
  Instant due = std::min(deadline_, own_wake_);
  if (network_.has_work(host_)) {
    // If the last turn left it there, that did not poll every channel; and a turn takes a while.
    const Instant soon = took_nothing_ ? last_turn_ + kLeastTurn : network_.now();
    due = std::min(due, std::max(network_.now(), soon));
  } else if (idle_turns_ > 1 && deadline_ <= network_.now()) {
    // It wants to send and the port takes nothing: polls with growing pauses.
    const Duration backoff = std::min(plan_.turn_gap * idle_turns_, kMaxBackoff);
    due = std::min(last_turn_ + backoff, own_wake_);
  }
  return due == kNever ? kNever : earliest_run(due);
}

void Node::turn() {
  last_turn_ = network_.now();
  const std::uint64_t sent_before = network_.counters().sent;
  const bool was_interrupted = std::exchange(in_mid_turn_, false);
  std::size_t received = was_interrupted ? end_interrupted_turn() : progress(local_now());
  if (plan_.poll_interval.count() != 0 && !plan_.polls_once) {
    std::size_t more = received;
    for (std::size_t i = 1; i < kTurnsPerPoll && more != 0; ++i) {
      more = progress(local_now());
      received += more;
    }
  }
  go_on_closing();
  own_wake_ = was_interrupted ? network_.now() : kNever;
  touched();
  note_turn(received, network_.counters().sent - sent_before);
  share_processor(!was_interrupted);
  audit();
}

std::size_t Node::progress(Instant now) {
  const std::size_t received = engine_->progress(now);
  return relay_ == nullptr ? received : received + relay_->progress(now);
}

void Node::touched() {
  last_look_ = local_now();
  const bool may_sleep = engine_->may_sleep();
  Instant local = may_sleep ? engine_->next_deadline() : local_now();
  if (relay_ != nullptr) local = std::min(local, relay_->next_due());
  deadline_ = local == kNever        ? kNever
              : local <= local_now() ? network_.now()
                                     : local - clock_offset_;
}

void Node::note_turn(std::size_t received, std::uint64_t sent) {
  took_nothing_ = received == 0;
  const bool asks_again = deadline_ <= network_.now();
  idle_turns_ = asks_again && received == 0 && sent == 0 ? idle_turns_ + 1 : 0;
  if (idle_turns_ == kMaxIdleTurns) {
    network_.findings().report(
        fmt::format("host {} asks for progress() at once, {} times in a row, and does nothing\n{}",
                    host_, idle_turns_, engine_->inspector().dump()));
  }
}

// Makes the rest of a turn in which the process stopped, by the clock as it was before: what came
// meanwhile by those NICs that had been read is read in the next turn.
std::size_t Node::end_interrupted_turn() {
  network_.overlook(host_, static_cast<std::uint32_t>(stops_.next()));
  const std::size_t received = progress(last_look_);
  network_.overlook(host_, 0);
  return received;
}

// Ends the time slice that is over. A process that slept meanwhile has a turn before it waits. It
// waits in the middle of the next turn, some NICs of which it has read, unless that would be so in
// each.
void Node::share_processor(bool was_whole_turn) {
  const TimeSlices& slices = plan_.slices;
  if (slices.waits.count() == 0 || network_.now() < slice_end_) return;
  const auto about = [this](Duration time) { return between(random_, time / 2, time * 3 / 2); };
  stall_until(network_.now() + about(slices.waits));
  in_mid_turn_ = was_whole_turn;
  slice_end_ = stalled_until_ + about(slices.runs);
}

void Node::audit() {
  const engine::Audit audit = engine_->inspector().audit();
  const auto report = [&](const char* what, std::uint64_t a, std::uint64_t b) {
    network_.findings().report(
        fmt::format("host {}: {}: {} and {}\n{}", host_, what, a, b, engine_->inspector().dump()));
  };
  if (audit.hotel_guests != audit.packets_in_flight) {
    report("hotel guests and packets in flight differ", audit.hotel_guests,
           audit.packets_in_flight);
  }
  if (audit.packets_taken != audit.packets_accounted) {
    report("packets taken and packets accounted for differ", audit.packets_taken,
           audit.packets_accounted);
  }
  // There are that many of each of two sizes.
  if (audit.packets_taken > 2 * plan_.config.send_packets) {
    report("more packets taken than Config::send_packets", audit.packets_taken,
           2 * plan_.config.send_packets);
  }
  if (audit.peers_inconsistent != 0) {
    report("peers in a state that their phase does not allow", audit.peers_inconsistent, 0);
  }
  if (audit.peers_unlisted != 0) {
    report("peers that could be served are not in the list", audit.peers_unlisted, 0);
  }
  const std::uint64_t budget =
      std::max<std::uint64_t>(plan_.config.unexpected_bytes, 4096 * plan_.config.max_peers);
  if (audit.unexpected_bytes > budget) {
    report("unexpected messages exceed their budget", audit.unexpected_bytes, budget);
  }
}

}  // namespace pullman::sim
