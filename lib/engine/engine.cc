#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "message/tx/fragments.h"

namespace pullman::engine {
namespace {

// The pause before ports that took nothing are tried again; it doubles with each such turn.
constexpr Duration kRefusalPause = std::chrono::microseconds(4);
constexpr unsigned kMaxStalledTurns = 7;

NicTable::Modules modules_of(std::vector<NicPorts> nics, channel::Protector* protector) {
  NicTable::Modules modules;
  modules.reserve(nics.size());
  for (NicPorts& nic : nics) modules.push_back(make_module(std::move(nic), protector));
  return modules;
}

std::unique_ptr<PacketProtection> protection_of(const Identity& identity,
                                                EngineResources& resources) {
  if (identity.protection == wire::Protection::kOff) return nullptr;
  return std::make_unique<PacketProtection>(identity.protection, identity.job_keys, resources.epoch,
                                            resources.random, resources.peers);
}

std::size_t largest_packet(const std::vector<NicPorts>& nics) {
  std::size_t largest = 0;
  for (const NicPorts& nic : nics) {
    for (const nic::Port* port : {nic.command.get(), nic.data.get()}) {
      largest = std::max(largest, port->limits().packet_bytes);
    }
  }
  return largest;
}

std::size_t keys_of(const PacketProtection* protection) {
  return protection == nullptr ? 0 : protection->keys();
}

}  // namespace

Engine::Engine(const Config& config, std::vector<NicPorts> nics, const Identity& identity,
               Instant now)
    : resources_(config, identity, largest_packet(nics)),
      protection_(protection_of(identity, resources_)),
      nics_(resources_.host, modules_of(std::move(nics), protection_.get())),
      clock_(now),
      poller_(nics_),
      credits_(nics_, now),
      resolver_(resources_.peers, nics_),
      acks_(resources_.config, resources_.inbox_counters, resources_.stats, credits_),
      sender_(resources_.config, resources_.peers, nics_, credits_, acks_),
      reclaimer_(resources_.packets, ready_),
      accepts_(resources_.config, resources_.peers),
      check_(resources_.peers, nics_, sender_, clock_, resources_.alarms, resources_.random,
             keys_of(protection_.get())),
      replies_(resources_.config, nics_, resolver_),
      lifecycle_(resources_.config, resources_.peers, ready_, reclaimer_, resources_.alarms,
                 {resources_.packets, resolver_, acks_, check_, accepts_, resources_.matchers,
                  resources_.regions, resources_.memory_peers, resources_.stats, resources_.ended}),
      liveness_(resources_.config, resources_.peers, ready_, reclaimer_, resources_.alarms, check_,
                lifecycle_),
      path_sizer_(resources_.stats, sender_, reclaimer_, lifecycle_),
      rails_(resources_.config, resources_.epoch,
             {resources_.link_options, resources_.link_resources}, resources_.peers, nics_, poller_,
             resolver_, ready_, reclaimer_, resources_.alarms, clock_, check_, lifecycle_,
             resources_.stats),
      exchange_(resources_.config, resources_.epoch, resources_.host, nics_, resolver_, ready_,
                sender_, reclaimer_, resources_.alarms, clock_, lifecycle_, rails_),
      memory_setup_(resources_.pairs, resources_.epoch, resources_.host, resources_.random,
                    resources_.memory_peers, ready_),
      blocked_(resources_.config, resources_.peers, ready_, resources_.reserve, resources_.matchers,
               resources_.inbox_counters, resources_.stats),
      frame_handler_(clock_, ready_, reclaimer_, lifecycle_, rails_, exchange_, memory_setup_,
                     blocked_),
      ack_handler_(ready_, acks_, reclaimer_, resources_.alarms, lifecycle_, path_sizer_, rails_),
      handshake_(resources_.config, resources_.epoch, resources_.host, resources_.random,
                 {resources_.link_options, resources_.link_resources, resources_.inbox,
                  resources_.outbox, resources_.packets, resources_.eager_bytes},
                 resources_.peers, nics_, poller_, credits_, resolver_, ready_, acks_, sender_,
                 accepts_, lifecycle_, rails_, exchange_, memory_setup_, frame_handler_,
                 keys_of(protection_.get())),
      port_events_(nics_, poller_, resolver_, replies_, liveness_, rails_, exchange_, handshake_),
      nic_changes_(resources_.peers, nics_, poller_, credits_, resolver_, ready_, reclaimer_,
                   replies_, lifecycle_, rails_, ack_handler_, handshake_, port_events_),
      transmitter_(resources_.config, resources_.peers, nics_, poller_, clock_, ready_, sender_,
                   lifecycle_, path_sizer_, rails_, exchange_, memory_setup_, handshake_,
                   resources_.stats),
      memory_receiver_(resources_.memory_peers, poller_, ready_, reclaimer_, lifecycle_,
                       memory_setup_, frame_handler_, resources_.inbox_counters, resources_.stats),
      memory_watch_(resources_.pairs, resources_.memory_peers, poller_, lifecycle_,
                    memory_receiver_),
      receiver_(resources_.config, resources_.epoch, resources_.peers, nics_, poller_, credits_,
                clock_, ready_, acks_, check_, replies_, lifecycle_, liveness_, frame_handler_,
                ack_handler_, handshake_, memory_receiver_, protection_.get(),
                resources_.inbox_counters, resources_.stats),
      timers_(resources_.peers, resources_.hotel, resources_.alarms, ready_, acks_, reclaimer_,
              check_, lifecycle_, liveness_, rails_, exchange_, ack_handler_, handshake_),
      sending_(resources_.config, resources_.peers, nics_, ready_, acks_, lifecycle_, ack_handler_,
               transmitter_, resources_.stats),
      matching_(resources_.peers, resources_.matchers, ready_, lifecycle_),
      remote_memory_(resources_.peers, resources_.regions, resources_.random, ready_, sending_),
      inspector_(resources_, nics_, rails_, ack_handler_, transmitter_),
      collector_(resources_, nics_, rails_, ack_handler_, inspector_),
      neighbours_(resources_.peers, nics_, lifecycle_, resources_.epoch, resources_.stats) {
  for (std::size_t slot = 0; slot < nics_.size(); ++slot) {
    poller_.add(slot, !nics_.is_further_address(slot));
  }
}

// Peers are in lists of components that are destroyed before the table of peers, so no peer may be
// left.
Engine::~Engine() {
  lifecycle_.abort();
  lifecycle_.discard_all();
  PULLMAN_CHECK(resources_.peers.size() == 0);
}

// Receives what has arrived, handles timers, sends what is due, and sends alone the ACKs that
// nothing has piggybacked.
std::size_t Engine::progress(Instant now) noexcept {
  const unsigned stalled_turns = ready_.stalled_turns();
  const bool had_deferred = poller_.has_deferred();
  nics_.begin_turn();
  if (protection_ != nullptr) protection_->begin_turn(now);
  ack_handler_.handle_deferred(now);
  clock_.begin_turn(now);
  transmitter_.begin_turn();
  if (transmitter_.has_appended()) transmitter_.send_appended(now);
  std::size_t received = 0;
  if (shares_memory()) {
    received = memory_receiver_.receive_all(now);
    if (received != 0 && may_return_early(now)) return received;
  }
  received += receiver_.receive_all(now);
  if (shares_memory()) memory_watch_.look(now, received);
  port_events_.poll(now, received);
  timers_.expire(now, receiver_.holds_timers(had_deferred));
  if (blocked_.any()) [[unlikely]]
    blocked_.watch(now);
  transmitter_.transmit(now);
  acks_.send_due(now);
  nics_.flush();
  if (lifecycle_.any_left()) [[unlikely]]
    lifecycle_.discard_left();
  const bool stalled = received == 0 && !nics_.moved() && transmitter_.has_work();
  ready_.set_stalled_turns(stalled ? std::min(stalled_turns + 1, kMaxStalledTurns) : 0);
  return received;
}

// What has come through memory is the program's first: to look at everything else takes as long as
// to receive a short message. That has its turn when channels are due, after 32 us at most.
bool Engine::may_return_early(Instant now) const {
  return poller_.rests_beside_memory(now) && ready_.empty() && !nics_.has_posted() &&
         !acks_.any_due();
}

Instant Engine::next_deadline() const {
  const bool work = transmitter_.has_work();
  if (acks_.has_deferred() || poller_.has_deferred() || acks_.any_due() ||
      memory_receiver_.has_deferred() || memory_watch_.has_work()) {
    return Instant::min();
  }
  const unsigned stalled = ready_.stalled_turns();
  if (work && stalled == 0) return Instant::min();
  const Instant again =
      work ? clock_.polled_until() + kRefusalPause * (1 << stalled) : Instant::max();
  return std::min({again, poller_.resting_until(), blocked_.next_due(), timers_.next_due(),
                   memory_receiver_.next_due(), memory_watch_.next_due()});
}

std::vector<nic::Address> Engine::addresses() const {
  std::vector<nic::Address> outside;
  for (std::size_t i = 0; i < nics_.announced(); ++i) {
    if (!nics_[i].device().loopback && !nics_[i].device().relayed)
      outside.push_back(nics_.address_of(i));
  }
  if (outside.empty()) outside.push_back(nics_.address());
  return outside;
}

bool Engine::set_nic(Instant now, std::size_t slot, NicPorts nic) {
  if (lifecycle_.closing() || slot > nics_.size() || slot >= wire::kMaxNics) return false;
  auto module = make_module(std::move(nic), protection_.get());
  for (const ChannelKind kind : {ChannelKind::kCommand, ChannelKind::kData}) {
    if (module->channel(kind).packet_bytes() > longest_packet()) return false;
  }
  nic_changes_.set(now, slot, std::move(module));
  return true;
}

std::size_t Engine::longest_packet() const {
  return resources_.packets.large_bytes() - message::kFragmentRoom;
}

bool Engine::move_nic(Instant now, std::size_t from, std::size_t to) {
  if (lifecycle_.closing() || from == to || std::max(from, to) >= nics_.size()) return false;
  nic_changes_.move(now, from, to);
  return true;
}

// Whether memory can be shared belongs to what a check finds out.
Status Engine::begin_check(Instant now, PeerId id, Duration limit) noexcept {
  if (lifecycle_.closing()) return Status::kClosed;
  if (Peer* peer = resources_.peers.find(id)) memory_setup_.offer(*peer);
  return check_.begin(now, id, limit);
}

void Engine::close_abortively(Instant now) noexcept {
  lifecycle_.begin_close(now);
  transmitter_.send_last_byes(now);
  lifecycle_.abort();
}

}  // namespace pullman::engine
