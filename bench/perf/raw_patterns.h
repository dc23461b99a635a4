// What --raw measures: the tests' patterns on bare datagrams. A message above a packet is a stream
// of full packets. Datagrams get lost; every wait here has an end.
//
// Two patterns do for four tests. An exchange: a round of packets, then an answer (latency: as much
// back; rate: one packet). A flood: packets as fast as they go, measured where they arrive.
#pragma once

#include <cstdint>

#include "job.h"
#include "raw_control.h"
#include "raw_nic.h"
#include "report.h"

namespace perf {

// What both ends of a raw run have.
struct RawEnds {
  RawControl& control;
  RawNic& nic;
  double patience_s;
};

// How the messages of a job are cut into packets, and what is in them.
class RawPackets {
 public:
  RawPackets(RawNic& nic, const Job& job);

  std::uint64_t per_message() const { return per_message_; }
  // Whether packets are long enough to say which they are.
  bool labelled() const { return shortest_ >= sizeof(Label); }

  // Whether more than one packet is under way at a time.
  bool bursts() const;

  // Sends packet `index` of a round, by the next flush(). Returns false if it could not be sent:
  // lost, as it were.
  bool send(std::uint32_t round, std::uint64_t index);
  void flush();
  // One short packet, at once: "the round has arrived".
  bool send_word(std::uint32_t round);

  struct Label {
    std::uint32_t round = 0;
    std::uint32_t index = 0;
  };
  static Label label_of(std::span<const std::byte> packet);
  // With --check: whether a packet's bytes are what its label says.
  bool right(std::span<const std::byte> packet) const;

 private:
  std::size_t length_of(std::uint64_t index) const;
  bool push(std::size_t length);

  RawNic& nic_;
  const Job job_;
  std::uint64_t per_message_;
  std::size_t last_;      // bytes of a message's last packet
  std::size_t shortest_;  // of its packets
};

// raw_exchange.cc: latency and rate.
Outcome measure_raw_exchange(RawEnds ends, const Job& job);
Outcome serve_raw_exchange(RawEnds ends, const Job& job);

// raw_flood.cc: bandwidth and bidirectional.
Outcome measure_raw_flood(RawEnds ends, const Job& job);
Outcome serve_raw_flood(RawEnds ends, const Job& job);

// Empty polls after which a busier machine may have the processor, as in session.cc.
inline constexpr std::uint32_t kRawPollsBeforeYield = 128;
// Empty polls between looks at the clock and at the control connection.
inline constexpr std::uint32_t kRawPollsPerLook = 4096;

}  // namespace perf
