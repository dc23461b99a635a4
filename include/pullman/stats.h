// Counters of a context. All count from its construction; units are packets unless the name says
// else. A value: a copy of what was so when the context was asked. Errors: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pullman {

struct Stats {
  std::uint64_t messages_sent = 0;      // send() accepted
  std::uint64_t messages_received = 0;  // completed into a receive
  std::uint64_t bytes_sent = 0;         // of those messages
  std::uint64_t bytes_received = 0;
  std::uint64_t packets_sent = 0;          // sequenced, first transmissions
  std::uint64_t packets_received = 0;      // datagrams accepted, of all types
  std::uint64_t duplicate_packets = 0;     // received a second time, or after they were settled
  std::uint64_t retransmits = 0;           // packets declared lost whose frames were sent again
  std::uint64_t spurious_retransmits = 0;  // of those, the first one arrived after all
  // Tail-loss and keep-alive probes: without data, unless no packet was left for that.
  std::uint64_t probes_sent = 0;
  std::uint64_t timeouts = 0;             // probe timeouts: packets evicted from the hotel
  std::uint64_t path_probes_sent = 0;     // long packets sent to see whether the path carries them
  std::uint64_t path_black_holes = 0;     // paths found to carry less than was sent on them
  std::uint64_t evacuated_packets = 0;    // left for other rails when theirs was left
  std::uint64_t acks_sent = 0;            // ACKs sent alone
  std::uint64_t acks_piggybacked = 0;     // ACKs that rode on other packets
  std::uint64_t fast_path_sends = 0;      // messages that left from inside send()
  std::uint64_t unexpected_messages = 0;  // arrived before their receive was posted
  std::uint64_t held_back_sends = 0;      // send() had to queue by reference: limit reached
  std::uint64_t announced_sends = 0;      // of those, by their envelopes: no allowance
  std::uint64_t dropped_packets = 0;      // datagrams refused, all reasons together
  std::array<std::uint64_t, 16> dropped_by_reason{};  // index: wire::Verdict, see docs/wire.md 1.3
  std::uint64_t nic_send_errors = 0;                  // packets the device rejected
  std::uint64_t nic_receive_errors = 0;               // errored or truncated completions
  std::uint64_t nic_receive_overflows = 0;            // datagrams that our own sockets dropped
  // Errors that devices and the kernel told of, by what they are about: nobody answered in time;
  // handed back undone, its queue or connection was ended here; the device or its link; the far
  // host or the network refuses; this host refuses. Not packets: one may stand for many.
  std::uint64_t nic_errors_timeout = 0;
  std::uint64_t nic_errors_flushed = 0;
  std::uint64_t nic_errors_device = 0;
  std::uint64_t nic_errors_remote = 0;
  std::uint64_t nic_errors_local = 0;
  // Of drivers on kernel sockets; 0 elsewhere.
  std::uint64_t nic_packets_returned = 0;  // of which the network says: undeliverable (ICMP)
  std::uint64_t nic_packets_too_long = 0;  // for the interface, or the path
  std::uint64_t nic_bursts_sent = 0;       // calls that sent several packets as one
  std::uint64_t nic_bursts_received = 0;   // datagrams that were several packets
  std::uint64_t nic_bursts_refused = 0;    // sockets that send packets one by one since
  std::uint64_t peers_connected = 0;       // now
  std::uint64_t packets_in_flight = 0;     // now
  std::uint64_t unexpected_bytes = 0;      // now charged to peers for messages
  std::uint64_t rtt_ns = 0;                // smoothed round trip of the peer heard from last
};

}  // namespace pullman
