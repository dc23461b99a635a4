// Bare datagrams between one end and one peer, as the best program without a protocol sends them.
// Knows nothing of tests. One implementation per driver.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace perf {

class RawNic {
 public:
  virtual ~RawNic() = default;

  // How the other end's set_peer() wants to hear of this one.
  virtual const std::vector<std::byte>& address() const = 0;
  virtual void set_peer(const std::vector<std::byte>& address) = 0;

  virtual std::size_t packet_bytes() const = 0;
  // How many packets are worth sending before looking for what has arrived.
  virtual std::size_t packets_per_burst() const { return 1; }
  // From now on packets travel alone, to and fro, or as many as possible together.
  virtual void expect_bursts(bool) {}

  // Where the next packet's bytes are to be written before send().
  virtual std::span<std::byte> outgoing() = 0;
  // Sends the first `length` bytes of outgoing(), by the next flush() at the latest. Returns false
  // if the NIC has no room now.
  virtual bool send(std::size_t length) = 0;
  virtual bool flush() { return true; }

  // Takes one packet if there is one; it is valid until the next call.
  virtual bool receive(std::span<const std::byte>& packet) = 0;

  // Takes and forgets whatever has arrived.
  void drain() {
    std::span<const std::byte> packet;
    while (receive(packet)) {
    }
  }
};

}  // namespace perf
