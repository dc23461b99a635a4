// What the simulated network is told and what it tells: faults, fates, counters. Data only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace pullman::sim {

inline constexpr std::size_t kMaxHosts = 8;        // of a plan
inline constexpr std::size_t kNetworkHosts = 256;  // of a network
inline constexpr std::size_t kMaxNics = 8;         // of one host
inline constexpr std::uint8_t kAnyNic = 0xFF;
inline constexpr Duration kForever = std::chrono::hours(1000);
inline constexpr std::size_t kAnyLength = ~std::size_t{0};
inline constexpr Duration kNoiseDelay = std::chrono::microseconds(200);
// A link that has come up is not ready for so long; who asks for a neighbour's address in vain asks
// again after the other.
inline constexpr Duration kSettling = std::chrono::milliseconds(1);
inline constexpr Duration kAsksAgain = std::chrono::seconds(1);

enum class Channel : std::uint8_t { kCommand, kData };

// One port's place: host, channel and NIC.
struct Endpoint {
  std::uint8_t host = 0;
  Channel channel = Channel::kCommand;
  std::uint8_t nic = 0;
  std::size_t index() const {
    return (nic * kNetworkHosts + host) * 2u + static_cast<std::size_t>(channel);
  }
  bool operator==(const Endpoint&) const = default;
};
inline constexpr std::size_t kMaxEndpoints = kNetworkHosts * kMaxNics * 2;

// One end of a wire: a host's NIC, or any of them.
struct Plug {
  std::uint8_t host = 0;
  std::uint8_t nic = kAnyNic;

  bool covers(Endpoint at) const { return host == at.host && (nic == kAnyNic || nic == at.nic); }
};

// What a wire does in one direction. Chances are in millionths.
struct WireFaults {
  Duration delay = std::chrono::microseconds(5);
  Duration data_delay{0};  // on top, data channel: the two channels reorder against each other
  Duration jitter{0};      // up to, on top; a channel's packets stay in order
  std::uint64_t loss = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t reorder = 0;  // chance to be overtaken by what is sent within `reorder_by`
  Duration reorder_by{0};
  std::uint64_t corrupt = 0;
  std::uint64_t truncate = 0;
  std::uint64_t ns_per_kib = 0;                     // bandwidth; 0 is unlimited
  Duration queue = std::chrono::milliseconds(100);  // backlog the bottleneck holds before it drops
};

// From `start` on, until another begins, the path from one host to the other carries datagrams of
// so many bytes and drops longer ones.
struct Narrowing {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  Instant start;
  std::size_t bytes = kAnyLength;
  bool tells = false;  // the sender's port is told, as by ICMP
};

// Nothing gets from one host to the other while start <= now < end; by these NICs, if they are
// named.
struct Partition {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  Instant start;
  Instant end;
  std::uint8_t from_nic = kAnyNic;
  std::uint8_t to_nic = kAnyNic;
  bool holds = false;  // what is caught in it arrives when it is over

  bool stops(Endpoint source, Endpoint target) const {
    return Plug{from, from_nic}.covers(source) && Plug{to, to_nic}.covers(target);
  }
};

// Wires are worse than they were while start <= now < end.
struct Ailment {
  Plug from{};
  Plug to{};
  Instant start{};
  Instant end{};
  std::uint64_t loss = 0;     // chance in millionths, on top
  std::uint32_t slower = 1;   // times: delay, jitter and transfer
  std::uint64_t corrupt = 0;  // chance in millionths, on top
};

// Something is wrong with one NIC while start <= now < end.
struct NicTrouble {
  enum class Kind : std::uint8_t {
    kUnplugged,  // nothing gets in or out, and the host is told: link down, then link up; if it
                 // sends at once then, the neighbour's address is asked for in vain, for a second
    kDead,       // the same, and nobody says anything: sends succeed
    kStuck,      // takes nothing to send; what others send arrives
    kLiar,       // says of each packet that it could not be sent, and sends it
  };
  Plug at;
  Instant start;
  Instant end;
  Kind kind = Kind::kDead;
};
const char* name(NicTrouble::Kind kind);

// Datagrams nobody sent, per datagram sent, in millionths.
struct Noise {
  std::uint64_t stray = 0;     // random bytes
  std::uint64_t replay = 0;    // an old datagram again, to where it went
  std::uint64_t misroute = 0;  // an old datagram, to another port
  std::uint64_t forge = 0;     // a copy with fields changed and the wrong proof
  std::uint64_t hello = 0;     // a HELLO with fields changed
  bool knows_proof = false;    // forged with the right connection id: an attacker on the path
};

// How one host's ports behave.
struct PortPlan {
  std::uint8_t address_kind = 4;  // 4, 6, 255: see wire.md 5.3
  std::size_t packet_bytes = 1472;
  std::size_t receive_packets = 512;
  bool bursts = false;          // see nic::PortLimits::burst_bytes
  bool by_another_nic = false;  // does all that arrives
  std::size_t send_queue = 256;
  std::uint64_t send_ns_per_kib = 0;  // how fast the send queue drains
  std::uint64_t send_error = 0;       // chance in millionths that the device rejects a packet
  Duration resolve_delay{0};
  std::uint64_t resolve_failure = 0;
};

enum class Fate : std::uint8_t {
  kArrives,
  kDuplicated,
  kReordered,
  kCorrupted,
  kTruncated,  // and arrives
  kLost,
  kPartitioned,
  kHeld,  // by a partition, and arrives after it
  kDeadNic,
  kNoWay,       // there is no route between these NICs
  kUnresolved,  // the kernel has asked for the neighbour's address too early
  kTooLong,
  kQueueFull,
  kDropped,
  kMuted,
  kOverflowed,  // and does not
  kInjected,
};
const char* name(Fate fate);

// A datagram on its way, as observers see it.
struct Passing {
  Instant sent;
  Instant arrival;
  Endpoint from;
  Endpoint to;
  std::span<const std::byte> bytes;
  Fate fate = Fate::kArrives;
};

struct NetworkCounters {
  std::uint64_t sent = 0;
  std::uint64_t delivered = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t lost = 0;        // on the wire, whatever the reason
  std::uint64_t overflowed = 0;  // at a port whose receive buffers were all used
  std::uint64_t reordered = 0;   // within one channel
  std::uint64_t damaged = 0;     // corrupted or truncated
  std::uint64_t injected = 0;    // strays, replays, forgeries
};

}  // namespace pullman::sim
