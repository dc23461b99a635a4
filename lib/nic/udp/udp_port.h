// One kernel UDP socket as a Port: puts the sender, the receiver and the peers' table together.
//
// Threads: as Port.
#pragma once

#include "nic/port.h"
#include "nic/udp/peers.h"
#include "nic/udp/receive_room.h"
#include "nic/udp/receiver.h"
#include "nic/udp/sender.h"
#include "nic/udp/socket.h"

namespace pullman::nic::udp {

class UdpPort final : public Port {
 public:
  // Throws NicError.
  UdpPort(const Device& device, const PortOptions& options);

  std::size_t send(std::span<const Outgoing> batch) override {
    return sender_.send(batch, counters_);
  }
  std::size_t receive(std::span<Incoming> batch) override {
    return receiver_.receive(batch, counters_);
  }
  void give_back(std::span<const Incoming> batch) override { receiver_.give_back(batch); }
  void resolve(const Address& address, std::uint64_t cookie) override {
    peers_.resolve(address, cookie);
  }
  void forget(Destination to) override { peers_.forget(to); }
  std::size_t poll_events(std::span<PortEvent> events) override;

  const PortLimits& limits() const override { return limits_; }
  const PortCounters& counters() const override;
  const Address& address() const override { return address_; }
  std::size_t path_bytes(Destination to) const override;
  int wait_fd() const override { return socket_.fd(); }

  const ReceiveRoom& receive_room() const { return room_; }

 private:
  void size_buffers(const PortOptions& options);

  Socket socket_;
  Offloads offloads_;  // of the socket
  Address address_;
  PortLimits limits_;
  ReceiveRoom room_;
  mutable PortCounters counters_;  // the socket's own are read when asked for
  bool failed_ = false;            // kFailed was reported
  Peers peers_;
  Sender sender_;
  Receiver receiver_;
};

}  // namespace pullman::nic::udp
