// Faults, fates and counters of the simulated network. Data only.
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
// A link is ready so long after it came up; a neighbour's address that could not be resolved before
// is asked for again after the second time.
inline constexpr Duration kSettling = std::chrono::milliseconds(1);
inline constexpr Duration kAsksAgain = std::chrono::seconds(1);

enum class Channel : std::uint8_t { kCommand, kData };

// Names a port: host, channel and NIC.
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

// One end of a wire: a NIC of a host, or all of its NICs.
struct Plug {
  std::uint8_t host = 0;
  std::uint8_t nic = kAnyNic;

  bool covers(Endpoint at) const { return host == at.host && (nic == kAnyNic || nic == at.nic); }
};

// What a wire does to datagrams in one direction. Chances are in millionths.
struct WireFaults {
  Duration delay = std::chrono::microseconds(5);
  Duration data_delay{0};  // extra delay of the data channel, which reorders the channels
  Duration jitter{0};      // at most, on top; a channel's packets stay in order
  std::uint64_t loss = 0;
  std::uint64_t duplicate = 0;
  std::uint64_t reorder = 0;  // chance of being overtaken by what is sent within `reorder_by`
  Duration reorder_by{0};
  std::uint64_t corrupt = 0;
  std::uint64_t truncate = 0;
  std::uint64_t ns_per_kib = 0;                     // bandwidth; 0 is unlimited
  Duration queue = std::chrono::milliseconds(100);  // backlog the bottleneck holds before it drops
};

// From `start` until the next one begins, the path from one host to the other drops datagrams of
// more than `bytes`.
struct Narrowing {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  Instant start;
  std::size_t bytes = kAnyLength;
  bool tells = false;  // the sender's port is told (ICMP)
};

// Nothing passes from one host to the other while start <= now < end, or only not by the NICs that
// are named.
struct Partition {
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  Instant start;
  Instant end;
  std::uint8_t from_nic = kAnyNic;
  std::uint8_t to_nic = kAnyNic;
  bool holds = false;  // datagrams that are stopped arrive afterwards

  bool stops(Endpoint source, Endpoint target) const {
    return Plug{from, from_nic}.covers(source) && Plug{to, to_nic}.covers(target);
  }
};

// Wires are worse while start <= now < end.
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
    kUnplugged,  // nothing passes, and the host is told (link down, then up); for what is sent at
                 // once after that the neighbour's address resolves only after a second
    kDead,       // nothing passes, and sends succeed without a report
    kStuck,      // takes nothing to send; incoming packets arrive
    kLiar,       // reports that each packet could not be sent, and sends it
  };
  Plug at;
  Instant start;
  Instant end;
  Kind kind = Kind::kDead;
};
const char* name(NicTrouble::Kind kind);

// Datagrams that no host sent, in millionths per datagram that one sent.
struct Noise {
  std::uint64_t stray = 0;     // random bytes
  std::uint64_t replay = 0;    // an old datagram, sent again to where it went
  std::uint64_t misroute = 0;  // an old datagram, sent to another port
  std::uint64_t forge = 0;     // a copy with fields changed and the wrong proof
  std::uint64_t hello = 0;     // a HELLO with fields changed
  bool knows_proof = false;    // forgeries have the right connection id: an attacker on the path
};

// How one host's ports behave.
struct PortPlan {
  std::uint8_t address_kind = 4;  // 4, 6, 255: see wire.md 5.3
  std::size_t packet_bytes = 1472;
  std::size_t receive_packets = 512;
  bool bursts = false;          // see nic::PortLimits::burst_bytes
  bool by_another_nic = false;  // on all that arrives
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
  kTruncated,  // it arrives all the same
  kLost,
  kPartitioned,
  kHeld,  // by a partition, after which it arrives
  kDeadNic,
  kNoWay,       // no route between these NICs
  kUnresolved,  // the neighbour's address was asked for too early
  kTooLong,
  kQueueFull,
  kDropped,
  kMuted,
  kOverflowed,  // and is lost
  kInjected,
};
const char* name(Fate fate);

// A datagram under way, as observers see it.
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
  std::uint64_t lost = 0;        // on the wire, for whatever reason
  std::uint64_t overflowed = 0;  // at a port without a free receive buffer
  std::uint64_t reordered = 0;   // within one channel
  std::uint64_t damaged = 0;     // corrupted or truncated
  std::uint64_t injected = 0;    // strays, replays, forgeries
};

}  // namespace pullman::sim
