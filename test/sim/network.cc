#include "sim/network.h"

#include <algorithm>
#include <cstring>

#include "sim/draw.h"
#include "sim/sim_port.h"

namespace pullman::sim {

const char* name(Fate fate) {
  switch (fate) {
    case Fate::kArrives:
      return "arrives";
    case Fate::kDuplicated:
      return "arrives twice";
    case Fate::kReordered:
      return "arrives late";
    case Fate::kCorrupted:
      return "corrupted";
    case Fate::kTruncated:
      return "truncated";
    case Fate::kLost:
      return "LOST";
    case Fate::kPartitioned:
      return "PARTITIONED";
    case Fate::kHeld:
      return "HELD, and arrives late";
    case Fate::kDeadNic:
      return "DEAD NIC";
    case Fate::kUnresolved:
      return "UNRESOLVED";
    case Fate::kNoWay:
      return "NO WAY";
    case Fate::kTooLong:
      return "TOO LONG for the path";
    case Fate::kQueueFull:
      return "QUEUE FULL";
    case Fate::kDropped:
      return "DROPPED by rule";
    case Fate::kMuted:
      return "MUTED: sender is dead";
    case Fate::kInjected:
      return "INJECTED";
    case Fate::kOverflowed:
      return "OVERFLOWED the receiver";
  }
  return "?";
}

const char* name(NicTrouble::Kind kind) {
  switch (kind) {
    case NicTrouble::Kind::kUnplugged:
      return "unplugged";
    case NicTrouble::Kind::kDead:
      return "dead";
    case NicTrouble::Kind::kStuck:
      return "stuck";
    case NicTrouble::Kind::kLiar:
      return "says that it fails";
  }
  return "?";
}

Network::Network(std::size_t hosts, std::uint64_t seed, Findings& findings)
    : hosts_(hosts), random_(seed), findings_(findings), told_(hosts * hosts), overlooked_(hosts) {}

Network::Wire& Network::wire_of(Plug from, Plug to) {
  std::vector<Wire>& wires = wires_[from.nic * kMaxNics + to.nic];
  if (wires.empty()) wires.resize(hosts_ * hosts_);
  return wires[from.host * hosts_ + to.host];
}

Network::~Network() {
  for (const Event& event : heap_) {
    if (event.slot != Datagrams::kNone) datagrams_.release(event.slot);
  }
  if (datagrams_.in_use() != 0) findings_.report("receive buffers were never given back");
}

std::unique_ptr<nic::Port> Network::open(Endpoint at, const PortPlan& plan) {
  return std::make_unique<SimPort>(*this, at, plan);
}

void Network::attach(Endpoint at, SimPort& port) {
  ports_[at.index()] = &port;
  nics_ = std::max<std::size_t>(nics_, at.nic + 1u);
}
void Network::detach(Endpoint at, const SimPort& port) {
  if (ports_[at.index()] == &port) ports_[at.index()] = nullptr;
}

bool Network::has_work(std::size_t host) const {
  for (std::size_t nic = 0; nic < nics_; ++nic) {
    const std::size_t first = (nic * kNetworkHosts + host) * 2;
    for (const SimPort* port : {ports_[first], ports_[first + 1]}) {
      if (port != nullptr && port->has_work()) return true;
    }
  }
  return false;
}

void Network::end_faults() {
  calm_ = true;
  for (auto& wires : wires_) {
    for (Wire& wire : wires) {
      wire.faults.queue = kForever;
      wire.faults.jitter = Duration(0);
      wire.unresolved_until = {};
    }
  }
  partitions_.clear();
  ailments_.clear();
  troubles_.clear();
  for (SimPort* port : ports_) {
    if (port != nullptr) wake_at(now_, port->place());
  }
  noise_.chances = {};
}

void Network::trouble(const NicTrouble& trouble) {
  troubles_.push_back(trouble);
  const Endpoint at{trouble.at.host, Channel::kCommand, trouble.at.nic};
  wake_at(trouble.start, at);
  wake_at(trouble.end, at);
}

bool Network::troubled(Endpoint at, NicTrouble::Kind kind) const {
  return std::any_of(troubles_.begin(), troubles_.end(), [&](const NicTrouble& trouble) {
    return trouble.kind == kind && trouble.at.covers(at) && trouble.start <= now_ &&
           now_ < trouble.end;
  });
}

void Network::push(const Event& event) {
  heap_.push_back(event);
  heap_.back().serial = serial_++;
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void Network::wake_at(Instant when, Endpoint at) {
  push({.at = when, .to = at});
}

void Network::refuse(Endpoint at, Endpoint hearer, Duration delay,
                     std::span<const std::byte> packet) {
  Event event{.at = now_ + delay, .to = hearer, .from = at, .refusal = true};
  std::copy_n(packet.begin(), std::min(packet.size(), event.quoted.size()), event.quoted.begin());
  push(event);
}

void Network::advance(Instant now) {
  now_ = std::max(now_, now);
  while (!heap_.empty() && heap_.front().at <= now_) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Event event = heap_.back();
    heap_.pop_back();
    SimPort* port = ports_[event.to.index()];
    if (event.slot != Datagrams::kNone) arrive(event);
    if (event.refusal && port != nullptr) port->refuse(event.from, event.quoted);
  }
}

void Network::arrive(const Event& event) {
  SimPort* port = ports_[event.to.index()];
  if (port != nullptr && port->arrive(event.slot)) {
    ++counters_.delivered;
    return;
  }
  ++counters_.overflowed;
  note({.sent = event.at,
        .arrival = event.at,
        .from = event.to,
        .to = event.to,
        .bytes = datagrams_.bytes(event.slot),
        .fate = Fate::kOverflowed});
  if (port == nullptr) answer_refused(event, datagrams_.bytes(event.slot));
  datagrams_.release(event.slot);
}

// The host is alive and answers that the port is closed (ICMP), on the datagram's way back if that
// is open.
void Network::answer_refused(const Event& event, std::span<const std::byte> packet) {
  const Passing back{.sent = now_,
                     .arrival = now_,
                     .from = event.to,
                     .to = event.from,
                     .bytes = {},
                     .fate = Fate::kArrives};
  const bool passes = refuses_ && event.from != event.to && !nic_is_dead(back) &&
                      partition_of(back) == nullptr &&
                      reach(back.from, back.to) != nic::Reach::kNone;
  if (passes)
    refuse(event.to, event.from,
           wire(Plug{event.to.host, event.to.nic}, Plug{event.from.host, event.from.nic}).delay,
           packet);
}

void Network::transmit(Endpoint from, Endpoint to, std::span<const std::byte> head,
                       std::span<const std::byte> payload) {
  ++counters_.sent;
  const Datagrams::Slot slot = datagrams_.make(head, payload);
  counters_.bytes_sent += head.size() + payload.size();
  Passing passing{.sent = now_,
                  .arrival = kNever,
                  .from = from,
                  .to = to,
                  .bytes = datagrams_.bytes(slot),
                  .fate = Fate::kArrives};
  const auto noise = noise_.hear(random_, {hosts_, nics_}, passing);
  pass(slot, passing);
  note(passing);
  if (passing.arrival == kNever) {
    ++counters_.lost;
    datagrams_.release(slot);
  } else {
    push({.at = passing.arrival, .to = to, .slot = slot, .from = from});
  }
  if (noise) inject(from, noise->to, noise->bytes, between(random_, Duration(0), kNoiseDelay));
}

// Decides a datagram's fate; without an arrival it is lost.
void Network::pass(Datagrams::Slot slot, Passing& passing) {
  const Plug from{passing.from.host, passing.from.nic};
  const Plug to{passing.to.host, passing.to.nic};
  Wire& wire = wire_of(from, to);
  const WireFaults faults = faults_of(wire, passing);
  if (muted_[passing.from.host]) {
    passing.fate = Fate::kMuted;
  } else if (drop_rule_ && drop_rule_(passing)) {
    passing.fate = Fate::kDropped;
  } else if (nic_is_dead(passing)) {
    passing.fate = Fate::kDeadNic;
  } else if (reach(passing.from, passing.to) == nic::Reach::kNone) {
    passing.fate = Fate::kNoWay;
  } else if (unresolved(passing, wire)) {
    passing.fate = Fate::kUnresolved;
  } else if (const Partition* partition = partition_of(passing)) {
    passing.fate = Fate::kPartitioned;
    if (partition->holds) {
      passing.arrival = partition->end + (arrival_on(wire, faults, passing) - now_);
      passing.fate = Fate::kHeld;
      ++counters_.reordered;
    }
  } else if (too_long(passing)) {
    passing.fate = Fate::kTooLong;
  } else if (chance(faults.loss)) {
    passing.fate = Fate::kLost;
  } else if (wire.busy_until - now_ > faults.queue) {
    passing.fate = Fate::kQueueFull;
  } else {
    passing.arrival = arrival_on(wire, faults, passing);
    damage(slot, faults, passing);
    if (chance(faults.duplicate)) {
      passing.fate = Fate::kDuplicated;
      const Duration later = between(random_, Duration(0), faults.delay + faults.jitter);
      push({.at = passing.arrival + later,
            .to = passing.to,
            .slot = datagrams_.make(datagrams_.bytes(slot)),
            .from = passing.from});
    }
  }
}

const Partition* Network::partition_of(const Passing& passing) const {
  for (const Partition& partition : partitions_) {
    const bool now_valid = partition.start <= now_ && now_ < partition.end;
    if (now_valid && partition.stops(passing.from, passing.to)) return &partition;
  }
  return nullptr;
}

// The first packet after a link came up waits for the neighbour's address, which cannot answer yet;
// kernels ask again after a second.
bool Network::unresolved(const Passing& passing, Wire& wire) const {
  const bool just_up =
      std::any_of(troubles_.begin(), troubles_.end(), [&](const NicTrouble& trouble) {
        return trouble.kind == NicTrouble::Kind::kUnplugged && trouble.at.covers(passing.from) &&
               trouble.end <= now_ && now_ < trouble.end + kSettling;
      });
  if (just_up && wire.unresolved_until <= now_) wire.unresolved_until = now_ + kAsksAgain;
  return now_ < wire.unresolved_until;
}

bool Network::nic_is_dead(const Passing& passing) const {
  if (troubles_.empty()) return false;
  using Kind = NicTrouble::Kind;
  return troubled(passing.from, Kind::kUnplugged) || troubled(passing.from, Kind::kDead) ||
         troubled(passing.to, Kind::kUnplugged) || troubled(passing.to, Kind::kDead);
}

// Returns the wire's faults at this time.
WireFaults Network::faults_of(const Wire& wire, const Passing& passing) const {
  WireFaults faults = wire.faults;
  for (const Ailment& ailment : ailments_) {
    if (now_ < ailment.start || ailment.end <= now_) continue;
    if (!ailment.from.covers(passing.from) || !ailment.to.covers(passing.to)) continue;
    faults.loss = std::min<std::uint64_t>(faults.loss + ailment.loss, 1'000'000);
    faults.corrupt = std::min<std::uint64_t>(faults.corrupt + ailment.corrupt, 1'000'000);
    faults.delay *= ailment.slower;
    faults.jitter *= ailment.slower;
    faults.ns_per_kib *= ailment.slower;
  }
  return faults;
}

bool Network::too_long(const Passing& passing) {
  const Narrowing* now_valid = nullptr;
  for (const Narrowing& narrowing : narrowings_) {
    const bool here = narrowing.from == passing.from.host && narrowing.to == passing.to.host;
    if (here && narrowing.start <= now_) now_valid = &narrowing;
  }
  if (now_valid == nullptr || passing.bytes.size() <= now_valid->bytes) return false;
  if (now_valid->tells) tell(passing.from.host, passing.to.host, now_valid->bytes);
  return true;
}

// Bandwidth, delay and jitter keep a channel in order; only `reorder` takes a packet out of it.
Instant Network::arrival_on(Wire& wire, const WireFaults& faults, Passing& passing) {
  const auto transfer = passing.bytes.size() * faults.ns_per_kib / 1024;
  wire.busy_until =
      std::max(wire.busy_until, now_) + Duration(static_cast<Duration::rep>(transfer));
  Instant at = wire.busy_until + faults.delay;
  if (passing.to.channel == Channel::kData) at += faults.data_delay;
  if (faults.jitter.count() != 0) at += between(random_, Duration(0), faults.jitter);
  Instant& last = wire.last_arrival[static_cast<std::size_t>(passing.from.channel) * 2 +
                                    static_cast<std::size_t>(passing.to.channel)];
  if (chance(faults.reorder)) {
    ++counters_.reordered;
    passing.fate = Fate::kReordered;
    return std::max(at, last) + between(random_, Duration(0), faults.reorder_by);
  }
  last = std::max(at, last);
  return last;
}

void Network::damage(Datagrams::Slot slot, const WireFaults& faults, Passing& passing) {
  std::vector<std::byte>& bytes = datagrams_.bytes(slot);
  if (chance(faults.corrupt)) {
    const std::size_t flips = between(random_, 1, 4);
    for (std::size_t i = 0; i < flips; ++i) {
      bytes[random_.below(bytes.size())] ^= std::byte{1} << random_.below(8);
    }
    passing.fate = Fate::kCorrupted;
    ++counters_.damaged;
  }
  if (chance(faults.truncate)) {
    bytes.resize(random_.below(bytes.size()) + 1);
    passing.bytes = bytes;
    passing.fate = Fate::kTruncated;
    ++counters_.damaged;
  }
}

void Network::inject(Endpoint from, Endpoint to, std::span<const std::byte> bytes, Duration delay) {
  if (bytes.empty()) return;
  ++counters_.injected;
  const Datagrams::Slot slot = datagrams_.make(bytes);
  note({.sent = now_,
        .arrival = now_ + delay,
        .from = from,
        .to = to,
        .bytes = datagrams_.bytes(slot),
        .fate = Fate::kInjected});
  push({.at = now_ + delay, .to = to, .slot = slot, .from = from});
}

void Network::note(const Passing& passing) {
  const auto mix = [this](std::uint64_t value) { digest_ = (digest_ ^ value) * 0x100000001B3u; };
  mix(static_cast<std::uint64_t>(passing.sent.time_since_epoch().count()));
  mix(passing.from.index() * 16 + passing.to.index());
  mix(passing.bytes.size() * 16 + static_cast<std::uint64_t>(passing.fate));
  if (passing.bytes.size() >= 32) {
    std::uint64_t words[4];
    std::memcpy(words, passing.bytes.data(), sizeof(words));
    for (const std::uint64_t word : words) mix(word);
  }
  if (observer_) observer_(passing);
}

}  // namespace pullman::sim
