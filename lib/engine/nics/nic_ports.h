#pragma once

#include <memory>
#include <utility>

#include "channel/module.h"
#include "nic/port.h"

namespace pullman::engine {

// The open ports of one NIC's two channels.
struct NicPorts {
  nic::Device device;
  std::unique_ptr<nic::Port> command;
  std::unique_ptr<nic::Port> data;
};

// `protector` outlives the module; null: packets are not protected.
inline std::unique_ptr<channel::Module> make_module(NicPorts nic,
                                                    channel::Protector* protector = nullptr) {
  return std::make_unique<channel::Module>(std::move(nic.device), std::move(nic.command),
                                           std::move(nic.data), protector);
}

}  // namespace pullman::engine
