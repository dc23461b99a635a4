#include "micro/link_pair.h"

#include "base/check.h"

namespace pullman::bench {

std::unique_ptr<engine::Engine> make_engine(MemoryNetwork& network, std::size_t host,
                                            const Config& config, Instant now) {
  using Channel = MemoryNetwork::Channel;
  std::vector<engine::NicPorts> nics(1);
  nics[0].device.driver = "memory";
  nics[0].device.name = "memory";
  nics[0].command = network.open(host, Channel::kCommand);
  nics[0].data = network.open(host, Channel::kData);
  return std::make_unique<engine::Engine>(config, std::move(nics),
                                          KeyedRandom::key_from_seed(host + 1), now);
}

LinkPair::LinkPair()
    : a_{make_engine(network_, 0, Config(), now_), {}},
      b_{make_engine(network_, 1, Config(), now_), {}} {
  a_.peer = a_.engine->connect(now_, b_.engine->address()).peer;
  for (int turns = 0; turns < 1000; ++turns) {
    turn();
    if (const auto caller = b_.engine->accept()) b_.peer = *caller;
  }
  PULLMAN_CHECK(a_.engine->peer_state(a_.peer) == PeerState::kConnected);
  PULLMAN_CHECK(b_.engine->peer_state(b_.peer) == PeerState::kConnected);
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
  const Stats a = a_.engine->stats();
  const Stats b = b_.engine->stats();
  PULLMAN_CHECK(a.retransmits + b.retransmits + network_.dropped() == 0);
  return a.packets_sent + b.packets_sent;
}

}  // namespace pullman::bench
