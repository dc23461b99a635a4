#include "micro/link_pair.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "nic/trace/traced_port.h"

namespace pullman::bench {

std::unique_ptr<engine::Engine> make_engine(MemoryNetwork& network, std::size_t host,
                                            const Config& config, Instant now,
                                            wire::Protection protection, nic::trace::Ring* trace) {
  using Channel = MemoryNetwork::Channel;
  std::vector<engine::NicPorts> nics(1);
  nics[0].device.driver = "memory";
  nics[0].device.name = "memory";
  nics[0].command = network.open(host, Channel::kCommand);
  nics[0].data = network.open(host, Channel::kData);
  if (trace != nullptr) {
    for (std::unique_ptr<nic::Port>* port : {&nics[0].command, &nics[0].data}) {
      const auto number =
          trace->add_port({.name = {}, .description = {}, .address = (*port)->address()});
      *port = std::make_unique<nic::trace::TracedPort>(std::move(*port), *trace, *number);
    }
  }
  engine::Identity identity{KeyedRandom::key_from_seed(host + 1), host + 1};
  if (protection != wire::Protection::kOff) {
    identity.protection = protection;
    identity.job_keys.emplace_back();
  }
  return std::make_unique<engine::Engine>(config, std::move(nics), identity, now);
}

namespace {

Config config_for(std::size_t peers) {
  Config config;
  config.max_peers = std::max(config.max_peers, peers);
  return config;
}

std::optional<nic::trace::Ring> make_trace(bool wanted, const Instant& now) {
  if (!wanted) return std::nullopt;
  return nic::trace::Ring(Config().trace_bytes, now);
}

nic::trace::Ring* pointer_to(std::optional<nic::trace::Ring>& trace) {
  return trace ? &*trace : nullptr;
}

}  // namespace

LinkPair::LinkPair(std::size_t others, wire::Protection protection, bool traced)
    : network_(2 + others),
      a_trace_(make_trace(traced, now_)),
      b_trace_(make_trace(traced, now_)),
      a_{make_engine(network_, 0, Config(), now_, protection, pointer_to(a_trace_)), {}},
      b_{make_engine(network_, 1, config_for(1 + others), now_, protection, pointer_to(b_trace_)),
         {}} {
  for (std::size_t host = 2; host < 2 + others; ++host) meet(host);
  a_.peer = a_.engine->connect(now_, b_.engine->address()).peer;
  for (int turns = 0; turns < 1000; ++turns) {
    turn();
    if (const auto caller = b_.engine->accept()) b_.peer = *caller;
  }
  PULLMAN_CHECK(a_.engine->inspector().peer_state(a_.peer) == PeerState::kConnected);
  PULLMAN_CHECK(b_.engine->inspector().peer_state(b_.peer) == PeerState::kConnected);
}

// Its engine goes without a word: to the other end the peer is connected, and idle.
void LinkPair::meet(std::size_t host) {
  constexpr Tag kTag = 1;
  std::array<std::byte, 64> from{}, to{};
  Request send, receive;
  Config config;
  config.max_peers = 1;
  const auto caller = make_engine(network_, host, config, now_);
  b_.engine->matching().receive(now_, kAnyPeer, kTag, 0, to, receive);
  caller->sending().send(now_, caller->connect(now_, b_.engine->address()).peer, kTag, from, send);
  for (int turns = 0; turns < 100 || !receive.done(); ++turns) {
    caller->progress(tick());
    b_.engine->progress(now_);
  }
  PULLMAN_CHECK(b_.engine->accept() == receive.source());
  PULLMAN_CHECK(b_.engine->inspector().peer_state(receive.source()) == PeerState::kConnected);
  caller->abort();
  for (const auto channel : {MemoryNetwork::Channel::kCommand, MemoryNetwork::Channel::kData}) {
    network_.mailbox(host, channel).clear();
  }
}

LinkPair::~LinkPair() {
  a_.engine->abort();
  b_.engine->abort();
}

void LinkPair::turn() {
  tick();
  a_.engine->progress(now_);
  b_.engine->progress(now_);
}

std::uint64_t LinkPair::packets() const {
  const Stats a = a_.engine->inspector().stats();
  const Stats b = b_.engine->inspector().stats();
  PULLMAN_CHECK(a.retransmits + b.retransmits + network_.dropped() == 0);
  return a.packets_sent + b.packets_sent;
}

}  // namespace pullman::bench
