// The NIC interface over the simulated network.
//
// It also reports misuse: oversized packets, destinations that were never resolved or were
// forgotten, buffers given back twice or never.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "nic/port.h"
#include "sim/network.h"

namespace pullman::sim {

// Returns a port's address in the family of the run: 4, 6 or 255. `generation` counts the addresses
// that its NIC has had.
nic::Address address_of(Endpoint at, std::uint8_t kind = 4, std::uint8_t generation = 0);
// Returns the port of an address of any generation; nothing if no port can have it.
std::optional<Endpoint> endpoint_of(const nic::Address& address, std::size_t hosts);

class SimPort final : public nic::Port {
 public:
  SimPort(Network& network, Endpoint at, const PortPlan& plan);
  ~SimPort() override;
  SimPort(const SimPort&) = delete;
  SimPort& operator=(const SimPort&) = delete;

  std::size_t send(std::span<const nic::Outgoing> batch) override;
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override;
  bool by_another_nic(const nic::Incoming&) const override { return plan_.by_another_nic; }
  void give_back(std::span<const nic::Incoming> batch) override;
  void resolve(const nic::Address& address, std::uint64_t cookie) override;
  void forget(nic::Destination to) override;
  std::size_t poll_events(std::span<nic::PortEvent> events) override;
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  std::size_t path_bytes(nic::Destination to) const override;
  nic::Reach reach(const nic::Address& address) const override;
  bool is_own(const nic::Address& address) const override;
  int wait_fd() override { return -1; }

  // For the network: a datagram has arrived. Returns false if no buffer is free for it.
  bool arrive(Datagrams::Slot slot);
  // The port at `at` is closed, says an ICMP message that quotes so much of the packet.
  void refuse(Endpoint at, std::span<const std::byte, nic::PortEvent::kMaxQuoted> quoted);
  bool has_work() const;
  Endpoint place() const { return at_; }
  // How often reach() was called, which costs a kernel's port several system calls.
  std::size_t questions() const { return questions_; }
  // Returns when a full send queue has room again; kNever if it is not full.
  Instant room_at() const;

 private:
  struct Resolution {
    Instant due;
    nic::PortEvent event;
  };
  struct Known {
    std::optional<Endpoint> place;  // empty: forgotten
    std::uint64_t cookie = 0;
    std::uint8_t generation = 0;
  };

  bool take(const nic::Outgoing& packet);
  std::optional<Endpoint> place_of(nic::Destination to) const;
  void drain_queue();
  bool link_changed() const { return link_up_ != network_.link_up(at_); }

  Network& network_;
  const Endpoint at_;
  const PortPlan plan_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
  nic::Address address_;
  mutable std::size_t questions_ = 0;
  bool link_up_ = true;          // as last reported to the user
  std::deque<Instant> leaving_;  // when each packet in the send queue will have left it
  std::deque<Datagrams::Slot> arrived_;
  std::vector<Datagrams::Slot> lent_;
  std::deque<Resolution> resolutions_;  // in order of time
  std::vector<Known> destinations_;
  std::deque<nic::PortEvent> refusals_;
};

}  // namespace pullman::sim
