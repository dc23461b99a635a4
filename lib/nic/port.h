// The NIC interface: what the rest of Pullman knows of a datagram device (decision 0007). A driver
// derives Port once; batches, not packets, cross it, so a virtual call is paid per batch.
//
// Nobody above knows sockets, completion queues, prefixes, registered memory or address vectors; no
// driver knows connections, links or messages. A driver reads no clock and starts no thread.
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

// A resolved address: what a port wants to hear as the destination. Meaningful to that port only.
using Destination = std::uint64_t;
inline constexpr Destination kInvalidDestination = ~Destination{0};

// One packet to send, in at most two pieces (the second may be empty). Borrowed for the call: when
// send() returns, the bytes are the caller's again, whatever the NIC is still doing. A driver whose
// NIC reads later copies them into memory of its own.
struct Outgoing {
  std::span<const std::byte> head;
  std::span<const std::byte> payload;
  Destination to = kInvalidDestination;
};

// A batch has so many packets at most: four of the longest bursts of kernel UDP at MTU 1500 (65507
// bytes are 44). A driver that sends in system calls has room for as many in one.
inline constexpr std::size_t kBatchPackets = 176;

// One datagram received. Lent: the bytes stay valid until give_back() with the same `buffer`.
struct Incoming {
  std::span<const std::byte> bytes;  // as they were in the datagram's payload, prefix removed
  std::uint64_t buffer = 0;          // the driver's name for the memory
};

struct PortLimits {
  std::size_t packet_bytes = 0;     // largest datagram payload this port sends and receives
  std::size_t receive_packets = 0;  // full-size packets it holds unread before it drops any
  // Packets of one length, one after the other, leave together for much less: bytes of a longest
  // burst; 0: they do not.
  std::size_t burst_bytes = 0;
  // So many packets, sent or received, take some 100 us at most, each with a system call or a copy
  // of its own: a turn of the loop that takes longer delays every ACK, and looks like a queue in
  // the network to the other end.
  std::size_t packets_per_turn = kBatchPackets;
};

// How a packet gets to an address from here. Worse ones first: of what two ends say, the lesser
// counts.
enum class Reach : std::uint8_t {
  kNone,    // not at all: there is no route, or it is forbidden
  kRouted,  // perhaps: through a gateway, or nobody knows
  kDirect,  // without a gateway: on the same link
  kOwn,     // it is an address of this host: what is sent there does not leave it
};

struct PortEvent {
  enum class Kind : std::uint8_t {
    kResolved,       // `to` is the destination for the address resolved with `cookie`
    kResolveFailed,  // the address resolved with `cookie` cannot be reached from here
    kLinkDown,       // the device lost its link
    kAddressGone,    // the device has lost the port's address
    kLinkUp,         // the device has its link, and the port its address, back
    kFailed,         // the port is beyond use
    // Nobody listens at the address resolved with `cookie`, said the host that has it, or somebody
    // in its name: a hint. Not more than one per packet sent, and not for each of them.
    kRefused,
  };
  static constexpr std::size_t kMaxQuoted = 12;
  Kind kind = Kind::kFailed;
  std::uint64_t cookie = 0;
  Destination to = kInvalidDestination;
  // kRefused: the first bytes of the packet that was refused, as it is quoted; zeros if it is not.
  std::array<std::byte, kMaxQuoted> quoted{};
};

// All since the port was opened.
struct PortCounters {
  std::uint64_t sent = 0;               // packets taken
  std::uint64_t received = 0;           // packets handed up
  std::uint64_t send_refused = 0;       // send() took fewer than offered: queue or socket full
  std::uint64_t send_errors = 0;        // packets the device or kernel rejected; lost
  std::uint64_t receive_errors = 0;     // errored completions
  std::uint64_t receive_truncated = 0;  // datagrams longer than a packet; dropped
  // Each time the device or the kernel says that something failed; packets are counted above.
  ErrorCounts errors;
  // Of drivers on kernel sockets; 0 elsewhere.
  std::uint64_t receive_overflows = 0;  // datagrams that our own socket dropped: no room
  std::uint64_t returned = 0;           // packets of which the network says: undeliverable (ICMP)
  std::uint64_t too_long = 0;           // packets longer than the interface or the path carries
  std::uint64_t bursts_sent = 0;        // calls that sent several packets as one (UDP_SEGMENT)
  std::uint64_t bursts_received = 0;    // datagrams that were several packets (UDP_GRO)
  std::uint64_t offload_refused = 0;    // bursts are sent one by one since: 0 or 1
};

class Port {
 public:
  virtual ~Port() = default;

  // Sends packets in order. Returns how many were taken; the rest did not fit now: offer them
  // again. A packet the device rejects counts as taken and lost (send_errors). Each fits
  // limits().packet_bytes.
  virtual std::size_t send(std::span<const Outgoing> batch) = 0;

  // Receives up to batch.size() packets, but looks for no more once it has `enough`: with those may
  // come what came together with them. 0 means there are none right now, or only where the port has
  // not looked this time: that is looked at within the next few calls.
  virtual std::size_t receive(std::span<Incoming> batch, std::size_t enough) = 0;
  std::size_t receive(std::span<Incoming> batch) { return receive(batch, batch.size()); }

  // Whether that packet, which is not given back yet, is known to have arrived at our address by
  // another NIC of this host.
  virtual bool by_another_nic(const Incoming&) const { return false; }

  // Returns lent buffers, of a batch all or some; the driver reposts them in batches.
  virtual void give_back(std::span<const Incoming> batch) = 0;

  // Starts turning an address into a destination. Exactly one kResolved or kResolveFailed event
  // with this cookie follows, never from inside this call.
  virtual void resolve(const Address& address, std::uint64_t cookie) = 0;

  // The destination will not be used again.
  virtual void forget(Destination to) = 0;

  // Takes up to events.size() events; returns how many. May cost a system call when there are none,
  // too: not for every packet.
  virtual std::size_t poll_events(std::span<PortEvent> events) = 0;

  virtual const PortLimits& limits() const = 0;
  virtual const PortCounters& counters() const = 0;

  // Where others reach this port.
  virtual const Address& address() const = 0;

  // The largest datagram that the path to `to` is known to carry: limits().packet_bytes, or less if
  // the network said so. Anybody can make it say so: a hint, to be proved by a packet that arrives.
  virtual std::size_t path_bytes(Destination) const { return limits().packet_bytes; }

  // How `to` is reached from this port, as far as can be told without sending: a hint. May ask the
  // kernel: not for every packet.
  virtual Reach reach(const Address&) const { return Reach::kRouted; }

  // Whether this host has that address, as far as the kernel has told unasked: no system call, so
  // that strangers may have it looked at.
  virtual bool is_own(const Address&) const { return false; }

  // Becomes readable when receive() has something, or poll_events() something that the caller's own
  // calls did not bring about (poll them before sleeping); -1 if the driver has none. Being watched
  // may make every packet dearer: not to be asked for by who only polls.
  virtual int wait_fd() = 0;
  // Nobody sleeps on it until wait_fd() is asked for again. The descriptor stays the same; it may
  // say nothing meanwhile.
  virtual void unwatch() {}
};

// What an interface is to its host. Better ones first.
enum class Standing : std::uint8_t {
  kOutside,  // has hardware, stands on what has, or leads to a default route
  kPlain,    // nothing is known for it or against it: an end of a veth pair, as containers have
  kInside,   // a bridge without hardware, a port of one, a tunnel: for what is within the host
};

// One NIC as a driver sees it.
struct Device {
  std::string driver;            // of the driver that lists it
  std::string name;              // interface or domain name: "eth0", "usnic_0"
  std::string provider;          // fabric: the libfabric provider
  Address address;               // of the host on this NIC; port 0
  std::uint8_t prefix_bits = 0;  // of the address that all of its subnet have; 0 unknown
  std::size_t packet_bytes = 0;  // largest datagram payload
  std::uint32_t mbps = 0;        // 0 unknown
  int numa_node = -1;            // -1 unknown
  std::uint8_t distance = 0;     // from where this process runs; 0 near or unknown (hwloc, NUMA)
  bool up = true;
  bool loopback = false;
  Standing standing = Standing::kPlain;
  std::string nature;    // why, for people: "has hardware", "a port of docker0"; may be empty
  bool stream = false;   // datagrams in a byte stream (TCP): only where nothing else gets through
  std::string offloads;  // what the kernel does for bursts, for people; empty: not its affair
};

struct PortOptions {
  std::size_t packet_bytes = 0;  // largest datagram wanted, at most the device's; 0 = the device's
  std::size_t send_packets = 256;     // depth of the send queue
  std::size_t receive_packets = 256;  // receive buffers posted
  std::uint16_t port = 0;             // 0: any free one
  bool link_events = true;            // of link and address; false where another port tells them
  // Of drivers on kernel sockets; ignored elsewhere.
  std::size_t receive_buffer_bytes = 0;  // of the socket; 0: what is useful and the system grants
  unsigned busy_poll_us = 0;             // SO_BUSY_POLL; 0: as the system has it
  bool offloads = true;                  // let the kernel move packets in bursts, if it can
};

// Why a device could not be listed or opened: a sentence that says what to do.
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
