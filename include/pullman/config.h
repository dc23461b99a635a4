// The options of a context. Each option has a default, a range and an environment variable. Sizes
// are in bytes unless the name says packets. A context copies its Config when it is constructed, so
// later changes have no effect. from_environment() and validate() throw Error; nothing else throws.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pullman {

// The options of a context, with their defaults.
struct __attribute__((visibility("default"))) Config {
  // The driver that opens the NICs: "udp", "tcp" (for networks that filter
  // datagrams; both ends must use it), "fabric" (libfabric FI_EP_DGRAM), or
  // "auto", which means fabric if `provider` is set or a NIC bypasses the
  // kernel, and udp otherwise.                                              PULLMAN_DRIVER
  std::string driver = "auto";
  // The libfabric provider of the fabric driver. If empty, usnic is used if
  // there is one, else the best other provider.                             PULLMAN_PROVIDER
  std::string provider;
  // The NICs to use, in order of preference: names, addresses (10.0.0.1,
  // fe80::1%eth0) or prefixes (10.0.0.0/8). An entry that begins with "!"
  // excludes a NIC. The default is all usable NICs, nearest and fastest first;
  // bridges and tunnels, then loopback, are used only if there is nothing else.
  // The context warns about a NIC that is down, and uses it once it is up.
  // The variable is a comma-separated list.                                 PULLMAN_NICS
  std::vector<std::string> nics;
  // The largest number of NICs to use. With more than one, messages use all of
  // them and survive the loss of all but one. 1..8.                         PULLMAN_MAX_NICS
  std::size_t max_nics = 4;
  // Keeps a rail that failed out of use, at both ends, until
  // Context::restore_rail() is called for its NIC. Otherwise a rail is used
  // again once its probes are answered. A rail is not kept out while no other
  // rail could carry anything.                              PULLMAN_STICKY_RAILS (0, 1)
  bool sticky_rails = false;
  // Opens a TCP port beside each NIC as a last resort: it carries the traffic
  // of a peer for as long as no datagram reaches that peer. Both ends must set
  // it. It is off by default since it listens for connections and counts as a
  // second NIC.                                               PULLMAN_LAST_RESORT (0, 1)
  bool last_resort = false;
  // Reaches peers that no NIC reaches through processes that can, and passes on
  // the packets of others. Items between commas: "PREFIX via HOST:PORT", "default
  // via HOST:PORT" (the neighbour to pass packets on to; of several the first that
  // takes them), "on" (no route of its own). Empty: off. All processes on the way
  // must set it. The neighbours are connected from the start, and the space
  // kSpaces - 2 is the relay's. docs/decisions/0038.                          PULLMAN_RELAY
  std::string relay;
  // The ports of every NIC: of its command channel, to which peers connect, and
  // of its data channel. 0 takes any free port, the same on every NIC if it is
  // free there, too. Processes on one host need different ports.
  std::uint16_t port = 0;       // PULLMAN_PORT
  std::uint16_t data_port = 0;  // PULLMAN_DATA_PORT

  // A packet must hold the longest ACK (docs/wire.md 4.7), 560 bytes. A NIC that
  // carries less is not used. Over IPv4 an MTU of 604 is enough; 620 if packets
  // are protected.
  static constexpr std::size_t kLeastPacketBytes = 576;
  // The largest packet; 0 takes what the NIC carries. 576..65507.           PULLMAN_PACKET_BYTES
  std::size_t packet_bytes = 0;
  // The receive buffer of each socket of the udp and tcp drivers. More than
  // net.core.rmem_max needs CAP_NET_ADMIN. 0 asks for a useful size and takes
  // what the kernel grants. Up to 1 GiB.                        PULLMAN_RECEIVE_BUFFER_BYTES
  std::size_t receive_buffer_bytes = 0;
  // Kernel busy polling of the same sockets (SO_BUSY_POLL); 0 keeps the
  // system's setting. 0..10 ms.                                             PULLMAN_BUSY_POLL_US
  std::chrono::nanoseconds busy_poll{0};
  // Lets the kernel move packets of the udp driver in bursts (UDP_SEGMENT,
  // UDP_GRO), where it can.                                                 PULLMAN_OFFLOADS (0, 1)
  bool offloads = true;
  // Talks to processes of the same user on the same host through memory that
  // both have mapped (/dev/shm), and not through a NIC.
  //                                                                         PULLMAN_SHARED_MEMORY
  bool shared_memory = true;
  // The folder of the file in which other processes of the user see what this
  // context does (pullman-stat): empty is /dev/shm/pullman.UID, and 0 is none.
  //                                                                         PULLMAN_COUNTERS
  std::string counters;
  // Keeps the beginnings of the last packets sent and received, and writes them
  // to this file, as pcapng, when the context closes; to others beside it when
  // a peer has failed, and when trace_signal comes (pullman(7)). %p is the
  // process id, which is added if it is missing, and %h the host. Empty: none.
  //                                                                         PULLMAN_TRACE
  std::string trace;
  // The memory for them: 152 bytes for a packet. 4096 bytes to 1 GiB.       PULLMAN_TRACE_BYTES
  std::size_t trace_bytes = 8 << 20;
  // The signal that asks for the trace: "USR2" or the like. Empty: none.    PULLMAN_TRACE_SIGNAL
  std::string trace_signal;
  // Says in the log, one line each, what will make this context slow or fail,
  // and what to do: at its start what is known of NICs, buffers and limits, then
  // what a check of each rail to the first eight peers finds. What is fine has a
  // line, too (pullman(7)).                                               PULLMAN_SELF_TEST (0, 1)
  bool self_test = false;

  // Messages of up to this many bytes may use the command channel. 0..1024. PULLMAN_TINY_BYTES
  std::size_t tiny_bytes = 768;
  // How many bytes of one message peers may send before it is matched. The
  // limit is half of a peer's share of unexpected_bytes if that is less.
  // 1024..1048576.                                                          PULLMAN_EAGER_BYTES
  std::size_t eager_bytes = 64 * 1024;
  // The largest number of peers connected at once. 1..1000000.              PULLMAN_MAX_PEERS
  std::size_t max_peers = 1024;
  // Memory for unexpected messages, over all peers. Half of each peer's equal share is reserved for
  // it (at least 4096 bytes); the rest is lent, at most as much to one peer as is left. A message
  // of up to 24 bytes takes 128 bytes; a longer one 256, plus its eager bytes, plus a 32nd of them;
  // one that is only announced, or is being received, 256. At the bound a sender waits until the
  // program receives some of its messages. If no message arrives, leaves, is received or is sent
  // for ten seconds meanwhile, receives that name this sender end with kNoMemory. Receives from
  // kAnyPeer do so only if all connected peers wait like that, since any other may still send. Only
  // time in which the program makes calls counts: a long pause between two calls counts as 1.25 s.
  // Messages that have arrived are kept and can be received.
  // In addition, a receive whose bytes arrive with gaps takes up to a 32nd of its length, 32 KiB at
  // most, and the allocator rounds up.                     PULLMAN_UNEXPECTED_BYTES
  std::size_t unexpected_bytes = std::size_t{1} << 30;
  // Packets sent and not yet acknowledged, over all peers: this many small
  // ones and this many full-sized ones. 64..1048576.                        PULLMAN_SEND_PACKETS
  std::size_t send_packets = 16384;
  // Receive buffers posted on each channel. 16..65536.                      PULLMAN_RECEIVE_PACKETS
  std::size_t receive_packets = 512;
  // The largest number of packets in flight to one peer. 16..4096.          PULLMAN_SEND_WINDOW
  std::size_t send_window = 4096;

  // The longest time an ACK waits for a packet to be piggybacked on. 0..8 ms:
  // an ACK reports its delay in 16 bits, in units of 128 ns; one delayed
  // longer than that, 8.4 ms, gives no RTT sample. Both ends should have the
  // same: each takes its own for the other's, and probes too early if that
  // one's is longer.                                                        PULLMAN_ACK_DELAY_US
  std::chrono::nanoseconds ack_delay = std::chrono::microseconds(50);
  // The number of in-order packets after which an ACK is sent without delay.
  // It is also sent if the sender asks for it, which it does if it waits for
  // the ACK, if its window is nearly full, or if a message ends and it has
  // not asked for 64 packets. 1..1024.                                      PULLMAN_ACK_PACKETS
  std::size_t ack_packets = 256;
  // The probe timeout before the first RTT sample. 1 ms..10 s.              PULLMAN_PTO_INITIAL_US
  std::chrono::nanoseconds pto_initial = std::chrono::milliseconds(100);
  // Its lower bound after that. 100 us..1 s.                                PULLMAN_PTO_MIN_US
  std::chrono::nanoseconds pto_min = std::chrono::microseconds(100);
  // The silence after which a peer with operations pending is unreachable. A
  // silent peer without any is ended only when its place is needed for
  // another (max_peers). 10 ms..1 h.                                        PULLMAN_PEER_TIMEOUT_MS
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds(10);
  // The longest time close() delivers what was accepted. 0..1 h. PULLMAN_CLOSE_TIMEOUT_MS
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(10);

  // How long wait() and close() poll without receiving anything before they
  // sleep in the kernel until something arrives or a timer is due. 0 means
  // that they sleep only where other threads keep their processor busy. A
  // process that sleeps uses none, and receives a packet some 10 to 50 us
  // later. A NIC without a wait descriptor (every fabric NIC that bypasses
  // the kernel) is polled. 0..1 s.                                          PULLMAN_SLEEP_AFTER_US
  std::chrono::nanoseconds sleep_after{0};

  // Whether one thread at a time calls the context, or many, which a lock
  // serialises. With kMany any thread may make any call at any time, except
  // the constructor and the destructor, and may call done() and status() of a
  // request; it may read the rest of a request once it has seen it done.
  // wait(), close() and progress() release the lock after each turn; the first
  // two sleep for at most a millisecond, since other threads may send meanwhile.
  //                                                  PULLMAN_THREADS (one, many)
  enum class Threads : std::uint8_t { kOne, kMany };
  Threads threads = Threads::kOne;  // see Threads
  // Who moves packets: the calls of the program alone, or also a thread of the
  // library, while the program makes no call that does (Context::progress(),
  // test(), wait()). It sleeps in the kernel while there is nothing to do, and
  // beside a program that polls it looks after 60 us, and then less and less
  // often, every millisecond at last, whether that goes on; every 60 us where a
  // NIC has no wait descriptor. With it requests are read as with
  // kMany above; Request::on_done may be called in that thread, just after
  // done(), and the request must live until that has returned; and a program
  // sleeps in wait(), a millisecond at a time, not on wait_fd(), which is -1.
  //                                                  PULLMAN_PROGRESS (calls, thread)
  enum class Progress : std::uint8_t { kCalls, kThread };
  Progress progress = Progress::kCalls;  // see Progress
  // Binds that thread to those processors of the process that are near the first
  // NIC, where the machine tells which they are. Else it may run where the thread
  // may that constructs the context.                     PULLMAN_PIN_PROGRESS (0, 1)
  bool pin_progress = false;

  // How packets are protected: kAuthenticate proves that each comes from a
  // process of the job and was not changed; kEncrypt also hides what is in it;
  // kOff leaves them as they are. All processes must have the same. kDefault is
  // kAuthenticate, but kOff on the loopback alone if there is no key.
  // Peers on one host that share memory need no protection (docs/security.md).
  //                                         PULLMAN_SECURITY (authenticate, encrypt, off)
  enum class Security : std::uint8_t { kDefault, kAuthenticate, kEncrypt, kOff };
  Security security = Security::kDefault;  // see Security
  // The job's keys, 32 random bytes each. Processes that have none in common do
  // not hear each other. There is one, or up to kMaxKeys while one replaces
  // another, the newest first. If there is none here, they come from a file with
  // a key in each line, which only its owner may read (pullman-key makes one),
  // else from words, from which a key is made in a tenth of a second, and which
  // others may read, else from the launcher of the job (PMIx, PMI). Without
  // any a context throws Error(kBadOption), but on the loopback alone. With a
  // seed (below) there can be no key: two processes would seal with the same.
  using Key = std::array<std::byte, 32>;
  static constexpr std::size_t kMaxKeys = 4;  // that a job may have at once
  std::vector<Key> keys;                      // none: from the places below
  std::string key_file;                       // PULLMAN_KEY_FILE
  std::string pass_phrase;                    // PULLMAN_KEY

  // Adds a CRC-32 to every packet and requires one in received packets (both
  // ends must agree). For networks that have no checksum of their own; without
  // effect where packets are protected.                                     PULLMAN_CHECKSUM (0, 1)
  bool checksum = false;
  // Believes a connected peer about which addresses are its own: connect() to
  // any of them returns that peer, even if no packet has ever been exchanged
  // with the address. Only for jobs whose processes trust each other, since a
  // peer may claim another's address.              PULLMAN_BELIEVE_ADDRESSES (0, 1)
  bool believe_addresses = false;
  // The seed of epochs, connection proofs and packet numbers, for tests that
  // must repeat. Anybody who knows it can forge packets. 0 takes a key from
  // the kernel.                                                             PULLMAN_SEED
  std::uint64_t seed = 0;

  // Returns the defaults, overridden by the PULLMAN_* variables that are set. Throws
  // Error(kBadOption) with the variable, its value and its range if it cannot read one.
  static Config from_environment();

  // Throws Error(kBadOption) with the option, its value and its range if one is out of range.
  void validate() const;
};

}  // namespace pullman
