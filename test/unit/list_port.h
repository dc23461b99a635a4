// A NIC without a network, for engines under test: it sends into one list and receives from
// another.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "nic/port.h"

namespace pullman {

using Datagram = std::vector<std::byte>;

class ListPort final : public nic::Port {
 public:
  ListPort(std::uint8_t host, std::uint8_t channel, std::size_t packet_bytes, bool bursts = false) {
    address_.kind = 4;
    address_.length = 6;
    address_.bytes[0] = std::byte{10};
    address_.bytes[3] = std::byte{host};
    address_.bytes[5] = std::byte{channel};
    limits_ = {
        .packet_bytes = packet_bytes, .receive_packets = 512, .burst_bytes = bursts ? 65507u : 0};
  }

  std::size_t send(std::span<const nic::Outgoing> batch) override {
    offered.push_back(batch.size());
    batch = batch.first(std::min(batch.size(), room));
    if (room != kUnbounded) room -= batch.size();
    for (const nic::Outgoing& one : batch) {
      sent.emplace_back(one.head.begin(), one.head.end());
      sent.back().insert(sent.back().end(), one.payload.begin(), one.payload.end());
    }
    return batch.size();
  }
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override {
    ++asked;
    sent_when_asked = sent.size();
    std::size_t count = 0;
    for (; count < enough && !arriving.empty(); ++count) {
      lent_.push_back(std::move(arriving.front()));
      arriving.pop_front();
      batch[count] = {.bytes = lent_.back(), .buffer = 0};
    }
    return count;
  }
  void give_back(std::span<const nic::Incoming> batch) override {
    lent_.erase(lent_.begin(), lent_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
  void resolve(const nic::Address&, std::uint64_t cookie) override { resolving_.push_back(cookie); }
  void forget(nic::Destination) override {}
  std::size_t poll_events(std::span<nic::PortEvent> out) override {
    ++looked_at;
    std::size_t count = 0;
    for (; count < out.size() && !events.empty(); ++count) {
      out[count] = events.front();
      events.pop_front();
    }
    for (; count < out.size() && !resolving_.empty(); ++count) {
      out[count] = {.kind = nic::PortEvent::Kind::kResolved,
                    .cookie = resolving_.front(),
                    .to = ++destinations_};
      resolving_.pop_front();
    }
    return count;
  }
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  int wait_fd() override { return -1; }

  static constexpr std::size_t kUnbounded = ~std::size_t{0};

  std::size_t room = kUnbounded;     // packets that it still accepts
  std::vector<std::size_t> offered;  // packets, in each call
  std::vector<Datagram> sent;
  std::size_t asked = 0;            // calls of receive()
  std::size_t sent_when_asked = 0;  // size of `sent` at the last of them
  std::size_t looked_at = 0;        // calls of poll_events()
  std::deque<Datagram> arriving;
  std::deque<nic::PortEvent> events;  // to be reported

 private:
  nic::Address address_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
  nic::Destination destinations_ = 0;
  std::deque<std::uint64_t> resolving_;
  std::deque<Datagram> lent_;  // a deque, so that elements stay where they are
};

}  // namespace pullman
