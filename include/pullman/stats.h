// Counters of a context. All count from its construction, in packets unless the name says
// otherwise. A value: a snapshot. Nothing here fails. Its many members are one counter each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pullman {

// The counters, and four quantities at their end.
struct Stats {
  std::uint64_t messages_sent = 0;            // messages that send() accepted
  std::uint64_t messages_received = 0;        // messages that completed a receive
  std::uint64_t bytes_sent = 0;               // of those messages
  std::uint64_t bytes_received = 0;           // of those messages
  std::uint64_t packets_sent = 0;             // numbered packets, first transmissions
  std::uint64_t packets_received = 0;         // datagrams accepted, of all types
  std::uint64_t memory_packets_sent = 0;      // packets to peers on this host, through memory
  std::uint64_t memory_packets_received = 0;  // the same, from peers on this host
  std::uint64_t duplicate_packets = 0;        // received twice, or after their number was settled
  std::uint64_t retransmits = 0;              // packets declared lost whose frames were sent again
  std::uint64_t spurious_retransmits = 0;     // retransmits whose original arrived after all
  // Probes for tail loss and keepalive. They carry data only if no packet is free for a PING.
  std::uint64_t probes_sent = 0;
  std::uint64_t timeouts = 0;             // probe timeouts (PTO, RFC 9002) that made a probe due
  std::uint64_t path_probes_sent = 0;     // path MTU probes (RFC 8899)
  std::uint64_t path_black_holes = 0;     // paths that ceased to carry packets of their size
  std::uint64_t evacuated_packets = 0;    // packets moved to other rails when their rail was left
  std::uint64_t acks_sent = 0;            // ACKs sent alone
  std::uint64_t acks_piggybacked = 0;     // ACKs piggybacked on other packets
  std::uint64_t fast_path_sends = 0;      // messages that left inside send()
  std::uint64_t unexpected_messages = 0;  // messages that arrived before their receive
  std::uint64_t held_back_sends = 0;      // sends queued by reference since a limit was reached
  std::uint64_t announced_sends = 0;      // of those, sent as envelopes for lack of allowance
  std::uint64_t dropped_packets = 0;      // datagrams refused, all reasons together
  std::array<std::uint64_t, 16> dropped_by_reason{};  // index: wire::Verdict, see docs/wire.md 1.3
  std::uint64_t nic_send_errors = 0;                  // packets the device rejected
  std::uint64_t nic_receive_errors = 0;               // completions with an error, or truncated
  std::uint64_t nic_receive_overflows = 0;            // datagrams that local sockets dropped
  // Errors that devices and the kernel reported, by class. They are not packets: one may stand for
  // many.
  std::uint64_t nic_errors_timeout = 0;  // the operation was not answered in time
  std::uint64_t nic_errors_flushed = 0;  // returned undone: its queue or connection was closed here
  std::uint64_t nic_errors_device = 0;   // the device or its link failed
  std::uint64_t nic_errors_remote = 0;   // the remote host or the network refused
  std::uint64_t nic_errors_local = 0;    // this host refused
  // Counted by drivers on kernel sockets; 0 elsewhere.
  std::uint64_t nic_packets_returned = 0;  // reported undeliverable by ICMP
  std::uint64_t nic_packets_too_long = 0;  // too long for the interface or the path
  std::uint64_t nic_bursts_sent = 0;       // calls that sent several packets as one
  std::uint64_t nic_bursts_received = 0;   // datagrams that contained several packets
  std::uint64_t nic_bursts_refused = 0;    // sockets that fell back to single packets
  // Counted where Config::relay is set, in relayed packets; 0 elsewhere.
  std::uint64_t relay_sent = 0;               // of our own, passed to a neighbour
  std::uint64_t relay_received = 0;           // that were for this process
  std::uint64_t relay_forwarded = 0;          // of others, passed to a neighbour
  std::uint64_t relay_dropped_loop = 0;       // that had been here before
  std::uint64_t relay_dropped_too_far = 0;    // that had passed as many processes as they may
  std::uint64_t relay_dropped_no_way = 0;     // for which there was no next hop
  std::uint64_t relay_dropped_full = 0;       // for which a queue had no room
  std::uint64_t relay_dropped_malformed = 0;  // that could not be read
  // The current values of four quantities.
  std::uint64_t peers_connected = 0;
  std::uint64_t packets_in_flight = 0;  // to all peers
  std::uint64_t unexpected_bytes = 0;   // memory charged to peers for unexpected messages
  std::uint64_t rtt_ns = 0;             // smoothed RTT of the peer heard from last
};

}  // namespace pullman
