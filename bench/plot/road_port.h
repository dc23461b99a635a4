// A datagram port at one end of the road: a socket with a buffer of its own.
#pragma once

#include <deque>
#include <vector>

#include "nic/port.h"
#include "plot/road.h"

namespace pullman::lab {

nic::Address address_of(std::uint32_t place);

class RoadPort final : public nic::Port {
 public:
  RoadPort(Road& road, std::uint32_t place, const RoadPlan& plan);

  // A datagram reached the socket. False: its buffer is full.
  bool arrive(Datagram datagram);
  bool has_work() const { return !unread_.empty() || !resolved_.empty(); }

  std::size_t send(std::span<const nic::Outgoing> batch) override;
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override;
  void give_back(std::span<const nic::Incoming> batch) override;
  void resolve(const nic::Address& address, std::uint64_t cookie) override;
  void forget(nic::Destination) override {}
  std::size_t poll_events(std::span<nic::PortEvent> events) override;
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  int wait_fd() override { return -1; }

 private:
  Road& road_;
  std::uint32_t place_;
  nic::Address address_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
  std::deque<Datagram> unread_;
  std::deque<Datagram> lent_;  // given back in the order they were lent
  std::vector<nic::PortEvent> resolved_;
};

}  // namespace pullman::lab
