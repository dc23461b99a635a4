// A port around another that records what is sent and received by it (ring.h). What the other does
// not take is not recorded. Without a trace there is no such port, so it costs nothing then.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "nic/port.h"
#include "nic/trace/ring.h"

namespace pullman::nic::trace {

class TracedPort final : public Port {
 public:
  // The ring outlives it and has given it the number.
  TracedPort(std::unique_ptr<Port> inner, Ring& ring, std::uint16_t number)
      : inner_(std::move(inner)), ring_(ring), number_(number) {}

  std::size_t send(std::span<const Outgoing> batch) override {
    const std::size_t taken = inner_->send(batch);
    ring_.note_sent(number_, batch.first(taken));
    return taken;
  }
  std::size_t receive(std::span<Incoming> batch, std::size_t enough) override {
    const std::size_t got = inner_->receive(batch, enough);
    if (got != 0) ring_.note_received(number_, batch.first(got));
    return got;
  }
  void resolve(const Address& address, std::uint64_t cookie) override;
  std::size_t poll_events(std::span<PortEvent> events) override;

  bool by_another_nic(const Incoming& packet) const override {
    return inner_->by_another_nic(packet);
  }
  void give_back(std::span<const Incoming> batch) override { inner_->give_back(batch); }
  void forget(Destination to) override { inner_->forget(to); }
  const PortLimits& limits() const override { return inner_->limits(); }
  const PortCounters& counters() const override { return inner_->counters(); }
  const Address& address() const override { return inner_->address(); }
  std::size_t path_bytes(Destination to) const override { return inner_->path_bytes(to); }
  Reach reach(const Address& address) const override { return inner_->reach(address); }
  bool is_own(const Address& address) const override { return inner_->is_own(address); }
  int wait_fd() override { return inner_->wait_fd(); }
  void unwatch() override { inner_->unwatch(); }

 private:
  std::unique_ptr<Port> inner_;
  Ring& ring_;
  const std::uint16_t number_;
  std::map<std::uint64_t, Address> resolving_;  // by their cookies
};

}  // namespace pullman::nic::trace
