// An engine on one NIC without a network, and the wire between two of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "list_port.h"

namespace pullman {

struct ListEnd {
  ListEnd(std::uint8_t host, std::uint64_t seed, const Config& config,
          std::size_t data_bytes = 1472, bool bursts = false)
      : command(new ListPort(host, 1, 816)), data(new ListPort(host, 2, data_bytes, bursts)) {
    std::vector<engine::NicPorts> nics(1);
    nics[0].command.reset(command);
    nics[0].data.reset(data);
    engine = std::make_unique<engine::Engine>(
        config, std::move(nics), engine::Identity{KeyedRandom::key_from_seed(seed)}, Instant{});
  }
  ~ListEnd() { engine->abort(); }

  // Delivers to `other` what this end has sent since.
  void deliver_to(ListEnd& other) {
    for (const auto port : {&ListEnd::command, &ListEnd::data}) {
      for (Datagram& packet : (this->*port)->sent) {
        (other.*port)->arriving.push_back(std::move(packet));
      }
      (this->*port)->sent.clear();
    }
  }
  std::size_t sent() const { return command->sent.size() + data->sent.size(); }

  ListPort* command;  // owned by the engine
  ListPort* data;
  std::unique_ptr<engine::Engine> engine;
};

}  // namespace pullman
