// The options of a context. Every one has a default, a range and an environment variable. Sizes are
// in bytes unless the name says packets. A value: a context takes a copy when it is constructed,
// and later changes mean nothing. Errors: Error, by what is read or checked; nothing else throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pullman {

struct __attribute__((visibility("default"))) Config {
  // Which driver opens the NICs: "udp", "tcp" (where datagrams are filtered;
  // both ends must have it), "fabric" (libfabric FI_EP_DGRAM), or "auto":
  // fabric if `provider` is given or a NIC bypasses the kernel, else udp.   PULLMAN_DRIVER
  std::string driver = "auto";
  // libfabric provider for the fabric driver; empty: usnic, then the best.  PULLMAN_PROVIDER
  std::string provider;
  // NICs to use, the first ones first: names, addresses (10.0.0.1, fe80::1%eth0)
  // or prefixes (10.0.0.0/8); with "!" in front: not to use. Default: all usable
  // ones, nearest and fastest first; bridges and tunnels, then loopback, only if
  // there is nothing else. One that is down is waited for, which a warning
  // says. Comma-separated in the variable.                                  PULLMAN_NICS
  std::vector<std::string> nics;
  // How many of them. More than one, and messages use all of them, and survive
  // the loss of any but the last. 1..8.                                      PULLMAN_MAX_NICS
  std::size_t max_nics = 4;
  // A rail that failed stays out, at both ends, until Context::restore_rail() of
  // its NIC; else it is used again when it answers again. While it is the last
  // that could carry anything it is not kept out.           PULLMAN_STICKY_RAILS (0, 1)
  bool sticky_rails = false;
  // Have a stream (TCP) beside each NIC, too, for peers that no datagram
  // reaches, for as long as none does. Both ends must have it. Not the default:
  // it listens for connections, and counts as a second NIC.   PULLMAN_LAST_RESORT (0, 1)
  bool last_resort = false;
  // Ports of every NIC: of its command channel, where peers connect, and of its
  // data channel. 0: any free one. Each process on a host needs its own.
  std::uint16_t port = 0;       // PULLMAN_PORT
  std::uint16_t data_port = 0;  // PULLMAN_DATA_PORT

  // A packet must hold the longest ACK (docs/wire.md 4.7), 560 bytes. A NIC that
  // carries less is not used: over IPv4 an MTU of 604 is enough.
  static constexpr std::size_t kLeastPacketBytes = 576;
  // Largest packet; 0: what the NIC carries. 576..65507.                    PULLMAN_PACKET_BYTES
  std::size_t packet_bytes = 0;
  // Receive buffer of each socket of the udp and tcp drivers; beyond
  // net.core.rmem_max only with CAP_NET_ADMIN. 0: what is useful, as far as
  // it is granted. Up to 1 GiB. PULLMAN_RECEIVE_BUFFER_BYTES
  std::size_t receive_buffer_bytes = 0;
  // Kernel busy polling of the same sockets (SO_BUSY_POLL); 0: as the system
  // has it. 0..10 ms.                                                       PULLMAN_BUSY_POLL_US
  std::chrono::nanoseconds busy_poll{0};
  // The udp driver lets the kernel move packets in bursts (UDP_SEGMENT,
  // UDP_GRO), where it can.                                                 PULLMAN_OFFLOADS (0, 1)
  bool offloads = true;

  // Messages up to this many bytes may use the command channel. 0..1024.    PULLMAN_TINY_BYTES
  std::size_t tiny_bytes = 768;
  // Bytes of one message that others may send before it is matched; less if
  // half of a peer's share of unexpected_bytes is. 1024..1048576.           PULLMAN_EAGER_BYTES
  std::size_t eager_bytes = 64 * 1024;
  // Peers connected at once. 1..1000000.                                    PULLMAN_MAX_PEERS
  std::size_t max_peers = 1024;
  // Memory for messages nobody has posted a receive for, over all peers: half of each one's equal
  // share is its own (at least 4096 bytes), the rest is lent, to one at most as much as is left. A
  // message of up to 24 bytes takes 128; others 256, their eager bytes, a 32nd; announced ones or
  // those being received 256. At the bound a sender waits until the program receives some of its
  // messages. If meanwhile no message comes, leaves, is received or sent for ten seconds, receives
  // that name this sender end with kNoMemory; those from anybody do if all connected peers wait
  // like that, since any other may still send. The time counts while the program calls: of a long
  // pause between two calls 1.25 s do. Messages that have come stay, to be received.
  // Beside it a receive whose bytes come with gaps takes up to a 32nd of its length, 32 KiB at
  // most; and the allocator rounds up.                     PULLMAN_UNEXPECTED_BYTES
  std::size_t unexpected_bytes = std::size_t{1} << 30;
  // Packets being sent and not yet acked, over all peers: as many small
  // ones, and as many full ones. 64..1048576.                               PULLMAN_SEND_PACKETS
  std::size_t send_packets = 16384;
  // Receive buffers posted on each channel. 16..65536.                      PULLMAN_RECEIVE_PACKETS
  std::size_t receive_packets = 512;
  // Packets in flight to one peer. 16..4096.                                PULLMAN_SEND_WINDOW
  std::size_t send_window = 4096;

  // How long an ACK waits for company. 0..8 ms: an ACK says how long it waited
  // in 16 bits of 128 ns, and beyond that, 8.4 ms, it gives no round trip.  PULLMAN_ACK_DELAY_US
  std::chrono::nanoseconds ack_delay = std::chrono::microseconds(50);
  // In-order packets after which an ACK waits no longer; nor does it where
  // the sender asks for it: it waits, its window is short, or messages have
  // ended in 64 packets. 1..1024.                                           PULLMAN_ACK_PACKETS
  std::size_t ack_packets = 256;
  // Probe timeout: before the first round-trip sample; floor after it.      PULLMAN_RTO_INITIAL_US,
  // 1 ms..10 s; 100 us..1 s.                                                PULLMAN_RTO_MIN_US
  std::chrono::nanoseconds rto_initial = std::chrono::milliseconds(100);
  std::chrono::nanoseconds rto_min = std::chrono::microseconds(100);
  // Silence after which a peer with operations pending is unreachable; one without, when there is
  // no place for another (max_peers).
  // 10 ms..1 h.                                                             PULLMAN_PEER_TIMEOUT_MS
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds(10);
  // Bound on close(): draining what was accepted. 0..1 h. PULLMAN_CLOSE_TIMEOUT_MS
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(10);

  // How long wait() and close() poll without anything coming before they sleep
  // in the kernel until something does, or is due; 0: never, they poll, and a
  // processor is theirs. Asleep a process costs nothing, and what comes finds
  // it some 10 to 50 us later. A NIC without a wait descriptor (all of
  // fabric's that bypass the kernel) is polled. 0..1 s.                     PULLMAN_SLEEP_AFTER_US
  std::chrono::nanoseconds sleep_after{0};

  // Who calls the context: one thread at a time, or many, which a lock keeps
  // apart. With many every call but the constructor and the destructor may
  // come from any thread at any time, and done() and status() of a request,
  // too; what a request holds besides is for who has seen that it is done.
  // wait(), close() and progress() let others in after each turn; the first
  // two sleep for a millisecond at most, since others may send meanwhile.
  //                                                  PULLMAN_THREADS (one, many)
  enum class Threads : std::uint8_t { kOne, kMany };
  Threads threads = Threads::kOne;

  // Put a CRC-32 over every packet and require it of others (both ends must
  // agree). For networks that do not check by themselves.                   PULLMAN_CHECKSUM (0, 1)
  bool checksum = false;
  // Take connected peers at their word for which addresses are theirs:
  // connect() to any of them means the peer, before anything has got through
  // to there, and if nothing ever does. For jobs whose processes trust each
  // other: one that names another's address is taken for that one. PULLMAN_BELIEVE_ADDRESSES (0, 1)
  bool believe_addresses = false;
  // Seed of epochs, connection proofs and numbering, for tests that repeat:
  // a known seed lets anybody forge packets. 0: a key from the kernel.      PULLMAN_SEED
  std::uint64_t seed = 0;

  // The defaults, overridden by the PULLMAN_* variables that are set. Throws Error(kBadOption) with
  // the variable, its value and its range if one cannot be read.
  static Config from_environment();

  // Throws Error(kBadOption) with the option, its value and its range if one is out of it.
  void validate() const;
};

}  // namespace pullman
