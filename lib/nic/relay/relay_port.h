// A port without a device: what the engine sends by it waits here until the relay takes it, and
// what the relay puts here the engine receives. Its addresses are those of processes, behind the
// relay. Both queues are bounded; what does not fit when it arrives is dropped, as by a NIC.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "nic/port.h"

namespace pullman::nic {

class RelayPort final : public Port {
 public:
  // The packets that each queue holds.
  static constexpr std::size_t kQueue = 256;

  // `address` is relayed. No packet is longer than that.
  RelayPort(const Address& address, std::size_t packet_bytes);
  ~RelayPort() override;
  RelayPort(const RelayPort&) = delete;
  RelayPort& operator=(const RelayPort&) = delete;

  // --- the relay's side

  bool has_sent() const { return !sent_.empty(); }
  // Passes the packet that was sent first to `visit`, with the address that it is for, and forgets
  // it. There must be one.
  template <typename Visit>
  void take(Visit visit) {
    const Sent first = sent_.front();
    sent_.pop_front();
    visit(first.to, std::span<const std::byte>(bytes_of(first.buffer), first.length));
    free_.push_back(first.buffer);
  }
  // Lets a packet arrive; returns false if it is dropped.
  bool arrive(std::span<const std::byte> packet);
  bool has_arrived() const { return !arrived_.empty(); }

  // --- the engine's side

  std::size_t send(std::span<const Outgoing> batch) override;
  std::size_t receive(std::span<Incoming> batch, std::size_t enough) override;
  void give_back(std::span<const Incoming> batch) override;
  // Any address of the kind is resolved: whether there is a way is known when a packet leaves.
  void resolve(const Address& address, std::uint64_t cookie) override;
  void forget(Destination to) override;
  std::size_t poll_events(std::span<PortEvent> events) override;
  const PortLimits& limits() const override { return limits_; }
  const PortCounters& counters() const override { return counters_; }
  const Address& address() const override { return address_; }
  Reach reach(const Address& address) const override {
    return is_relayed(address) ? Reach::kRouted : Reach::kNone;
  }
  // Never becomes readable: what comes was brought by the caller's own calls.
  int wait_fd() override;

 private:
  struct Sent {
    Address to;
    std::uint32_t buffer = 0;
    std::size_t length = 0;
  };
  struct Arrived {
    std::uint32_t buffer = 0;
    std::size_t length = 0;
  };

  std::byte* bytes_of(std::uint32_t buffer) { return &memory_[buffer * limits_.packet_bytes]; }

  const Address address_;
  PortLimits limits_;
  PortCounters counters_;
  std::vector<std::byte> memory_;    // of all buffers
  std::vector<std::uint32_t> free_;  // buffers that hold nothing
  std::deque<Sent> sent_;
  std::deque<Arrived> arrived_;
  std::size_t held_ = 0;  // buffers that have arrived, or are lent
  std::vector<Address> destinations_;
  std::vector<Destination> unused_;  // those that were forgotten
  std::deque<PortEvent> events_;
  int descriptor_ = -1;
};

}  // namespace pullman::nic
