// A module: one open NIC with its command channel and its data channel.
//
// The command channel has small packets and short queues, so ACKs, control packets and tiny
// messages do not wait when the data channel is full. Does not know links or peers.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "channel/channel.h"
#include "nic/port.h"

namespace pullman::channel {

class Module {
 public:
  // `protector` outlives the module; null: packets are not protected.
  Module(nic::Device device, std::unique_ptr<nic::Port> command, std::unique_ptr<nic::Port> data,
         Protector* protector = nullptr)
      : device_(std::move(device)),
        command_(ChannelKind::kCommand, std::move(command), protector),
        data_(ChannelKind::kData, std::move(data), protector) {}

  Channel& channel(ChannelKind kind) { return kind == ChannelKind::kCommand ? command_ : data_; }
  const Channel& channel(ChannelKind kind) const {
    return kind == ChannelKind::kCommand ? command_ : data_;
  }
  const nic::Device& device() const { return device_; }

  // Returns how many packets a peer may have in flight to this NIC before one could be dropped for
  // lack of a receive buffer. In the worst case all take the same channel.
  std::size_t receive_packets() const {
    return std::min(command_.port().limits().receive_packets,
                    data_.port().limits().receive_packets);
  }

 private:
  nic::Device device_;
  Channel command_;
  Channel data_;
};

}  // namespace pullman::channel
