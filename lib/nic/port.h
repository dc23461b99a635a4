// The NIC interface: what the rest of Pullman knows of a datagram device (decision 0007). A driver
// derives Port once; calls take batches, so the cost of a virtual call is paid per batch.
//
// The layers above do not know sockets, completion queues, prefixes, registered memory or address
// vectors; drivers do not know connections, links or messages. A driver reads no clock and starts
// no thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "nic/address.h"
#include "nic/error_class.h"

namespace pullman::nic {

// A resolved address, as a port takes it. Only that port understands it.
using Destination = std::uint64_t;
inline constexpr Destination kInvalidDestination = ~Destination{0};

// One packet to send, in at most two segments (the second may be empty). Borrowed for the call:
// when send() returns the bytes are the caller's again, whatever the NIC is still doing. A driver
// whose NIC reads them later copies them.
struct Outgoing {
  std::span<const std::byte> head;
  std::span<const std::byte> payload;
  Destination to = kInvalidDestination;
};

// Most packets in a batch: four of the longest bursts of kernel UDP at MTU 1500 (65507 bytes are 44
// packets). A driver that sends by system calls can pass as many in one call.
inline constexpr std::size_t kBatchPackets = 176;

// One datagram received. It is lent: the bytes stay valid until give_back() with the same `buffer`.
struct Incoming {
  std::span<const std::byte> bytes;  // as they were in the datagram's payload, prefix removed
  std::uint64_t buffer = 0;          // the driver's handle of the memory
};

// A buffer of a kernel socket, in the kernel's accounting; 0: the port has none.
struct BufferGrant {
  std::size_t granted = 0;
  std::size_t wanted = 0;
};

struct PortLimits {
  std::size_t packet_bytes = 0;     // largest datagram payload this port sends and receives
  std::size_t receive_packets = 0;  // full-size packets it holds unread before it drops any
  // Consecutive packets of one length are much cheaper to send as a burst: the most bytes in one;
  // 0: there are no bursts.
  std::size_t burst_bytes = 0;
  // This many packets, sent or received with a system call or a copy each, take about 100 us. A
  // longer turn of the loop would delay every ACK, and the peer would take it for a queue in the
  // network.
  std::size_t packets_per_turn = kBatchPackets;
  BufferGrant receive_buffer{};
  BufferGrant send_buffer{};
};

// How an address is reached from here, worse ones first. Where two ends differ the lesser counts.
enum class Reach : std::uint8_t {
  kNone,    // not at all: there is no route, or it is forbidden
  kRouted,  // possibly: through a gateway, or unknown
  kDirect,  // without a gateway: on the same link
  kOwn,     // an address of this host: packets to it do not leave the host
};

struct PortEvent {
  enum class Kind : std::uint8_t {
    kResolved,       // `to` is the destination for the address resolved with `cookie`
    kResolveFailed,  // the address resolved with `cookie` cannot be reached from here
    kLinkDown,       // the device lost its link
    kAddressGone,    // the device has lost the port's address
    kLinkUp,         // the device has its link back, and the port its address
    kFailed,         // the port cannot be used any more
    // The host with the address resolved with `cookie` reported that nobody listens there, or
    // somebody forged that: a hint. At most one per packet sent, and not for every one.
    kRefused,
  };
  static constexpr std::size_t kMaxQuoted = 12;
  Kind kind = Kind::kFailed;
  std::uint64_t cookie = 0;
  Destination to = kInvalidDestination;
  // kRefused: the first bytes of the refused packet, as quoted; zeros if they are not quoted.
  std::array<std::byte, kMaxQuoted> quoted{};
};

// Counts since the port was opened.
struct PortCounters {
  std::uint64_t sent = 0;               // packets that were accepted
  std::uint64_t received = 0;           // packets handed up
  std::uint64_t send_refused = 0;       // send() took fewer than offered: queue or socket full
  std::uint64_t send_errors = 0;        // packets the device or kernel rejected; lost
  std::uint64_t receive_errors = 0;     // errored completions
  std::uint64_t receive_truncated = 0;  // datagrams longer than a packet; dropped
  // Every failure that the device or the kernel reported; packets are counted above.
  ErrorCounts errors;
  // Only for drivers on kernel sockets; 0 elsewhere.
  std::uint64_t receive_overflows = 0;  // datagrams that our own socket dropped: no room
  std::uint64_t returned = 0;           // packets reported as undeliverable (ICMP)
  std::uint64_t too_long = 0;           // packets longer than the interface or the path carries
  std::uint64_t bursts_sent = 0;        // calls that sent several packets as one (UDP_SEGMENT)
  std::uint64_t bursts_received = 0;    // datagrams that were several packets (UDP_GRO)
  std::uint64_t offload_refused = 0;    // 1: bursts were refused, so packets are sent one by one
};

class Port {
 public:
  virtual ~Port() = default;

  // Sends packets in order. Returns how many were accepted; the rest did not fit now and must be
  // offered again. A packet that the device rejects counts as accepted and lost (send_errors). Each
  // must fit limits().packet_bytes.
  virtual std::size_t send(std::span<const Outgoing> batch) = 0;

  // Receives up to batch.size() packets, but stops looking once it has `enough`; packets that came
  // together with those may be added. Returns 0 if there are none, or none where the port looked
  // this time: the next few calls look at the rest.
  virtual std::size_t receive(std::span<Incoming> batch, std::size_t enough) = 0;
  std::size_t receive(std::span<Incoming> batch) { return receive(batch, batch.size()); }

  // Whether that packet, not given back yet, is known to have arrived at our address by another NIC
  // of this host.
  virtual bool by_another_nic(const Incoming&) const { return false; }

  // Returns all or some lent buffers of a batch; the driver reposts them in batches.
  virtual void give_back(std::span<const Incoming> batch) = 0;

  // Starts turning an address into a destination. Exactly one kResolved or kResolveFailed event
  // with this cookie follows, never from inside this call.
  virtual void resolve(const Address& address, std::uint64_t cookie) = 0;

  // The destination will not be used again.
  virtual void forget(Destination to) = 0;

  // Writes up to events.size() events; returns how many. May cost a system call even if there are
  // none: not for every packet.
  virtual std::size_t poll_events(std::span<PortEvent> events) = 0;

  virtual const PortLimits& limits() const = 0;
  virtual const PortCounters& counters() const = 0;

  // The address at which other hosts reach this port.
  virtual const Address& address() const = 0;

  // Returns the largest datagram that the path to `to` is known to carry: limits().packet_bytes, or
  // less if the network reported so. Anybody can forge such a report: it is a hint, to be proved by
  // a packet that arrives.
  virtual std::size_t path_bytes(Destination) const { return limits().packet_bytes; }

  // Returns how `to` is reached from this port, as far as can be told without sending: a hint. May
  // ask the kernel: not for every packet.
  virtual Reach reach(const Address&) const { return Reach::kRouted; }

  // Whether this host has that address, as far as the kernel has reported. No system call, so
  // packets of strangers may cause a call.
  virtual bool is_own(const Address&) const { return false; }

  // Becomes readable when receive() has something, or when poll_events() has something that the
  // caller's own calls did not cause (poll those before sleeping); -1 if the driver has none. A
  // watched descriptor may make every packet dearer, so a caller that only polls should not ask for
  // it.
  virtual int wait_fd() = 0;
  // Nobody will sleep on the descriptor until wait_fd() is called again. It stays the same, but may
  // not become readable meanwhile.
  virtual void unwatch() {}
};

// The role of an interface in its host. Better ones first.
enum class Standing : std::uint8_t {
  kOutside,  // has hardware, is on top of some, or leads to a default route
  kPlain,    // unknown: an end of a veth pair, as containers have
  kInside,   // a bridge without hardware, a port of one, a tunnel: for use within the host
};

// One NIC as a driver sees it.
struct Device {
  std::string driver;            // the driver's name
  std::string name;              // interface or domain name: "eth0", "usnic_0"
  std::string provider;          // fabric: the libfabric provider
  Address address;               // the host's address on this NIC; port 0
  std::uint8_t prefix_bits = 0;  // length of the prefix of its subnet; 0 unknown
  std::size_t packet_bytes = 0;  // largest datagram payload
  std::uint32_t mbps = 0;        // 0 unknown
  int numa_node = -1;            // -1 unknown
  std::uint8_t distance = 0;     // from our processors; 0 near or unknown (hwloc, NUMA)
  bool up = true;
  bool loopback = false;
  Standing standing = Standing::kPlain;
  std::string nature;    // why `standing`: "has hardware", "a port of docker0"; may be empty
  bool stream = false;   // datagrams in a byte stream (TCP): used only as the last resort
  bool relayed = false;  // no device: packets go through other processes (nic/relay)
  std::string offloads;  // kernel offloads for bursts, as text; empty: no kernel NIC
};

struct PortOptions {
  std::size_t packet_bytes = 0;  // largest datagram wanted, at most the device's; 0 = the device's
  std::size_t send_packets = 256;     // depth of the send queue
  std::size_t receive_packets = 256;  // receive buffers posted
  std::uint16_t port = 0;             // 0: any free one
  bool link_events = true;            // report link and address; false where another port does
  // Only for drivers on kernel sockets; ignored elsewhere.
  std::size_t receive_buffer_bytes = 0;  // 0: as much as is useful and the system grants
  unsigned busy_poll_us = 0;             // SO_BUSY_POLL; 0: the system's setting
  bool offloads = true;                  // let the kernel move packets in bursts, if it can
};

// A device could not be listed or opened. The text tells the user what to do.
class NicError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string name() const = 0;
  virtual std::vector<Device> devices() = 0;
  // Throws NicError.
  virtual std::unique_ptr<Port> open(const Device& device, const PortOptions& options) = 0;
};

}  // namespace pullman::nic
