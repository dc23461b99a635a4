// Bare datagrams on a kernel UDP socket: connected, non-blocking, polled. Packets that travel alone
// cost one send() and one recv(); streams go in the largest bursts there are (UDP_SEGMENT) and are
// taken as they come together (UDP_GRO).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "raw_nic.h"

namespace perf {

class RawUdp final : public RawNic {
 public:
  // `host` is a local address or an interface name. Throws Failure.
  explicit RawUdp(const std::string& host);
  RawUdp(const RawUdp&) = delete;
  RawUdp& operator=(const RawUdp&) = delete;
  ~RawUdp() override;

  const std::vector<std::byte>& address() const override { return address_; }
  void set_peer(const std::vector<std::byte>& address) override;

  std::size_t packet_bytes() const override { return packet_bytes_; }
  std::size_t packets_per_burst() const override { return bursts_ ? max_packets_ : 1; }
  void expect_bursts(bool on) override;

  std::span<std::byte> outgoing() override {
    return std::span(burst_).subspan(burst_bytes_, packet_bytes_);
  }
  bool send(std::size_t length) override;
  bool flush() override { return burst_bytes_ == 0 || send_burst(); }
  bool receive(std::span<const std::byte>& packet) override;

 private:
  bool fits(std::size_t length) const;
  bool send_burst();
  bool receive_burst();

  int socket_ = -1;
  std::vector<std::byte> address_;
  std::size_t packet_bytes_ = 0;
  std::size_t max_packets_ = 1;  // of full size, in a burst
  bool bursts_ = false;

  std::vector<std::byte> burst_;   // packets one behind the other, to be sent
  std::size_t burst_bytes_ = 0;    // of them
  std::size_t burst_each_ = 0;     // bytes of each
  std::size_t burst_packets_ = 0;  // how many
  bool burst_ended_ = false;       // the last one is shorter: no more

  std::vector<std::byte> received_;
  std::size_t received_bytes_ = 0;
  std::size_t received_each_ = 0;  // bytes of each packet in it
  std::size_t received_at_ = 0;    // where the next one begins
};

}  // namespace perf
