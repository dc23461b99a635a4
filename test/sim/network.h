// The simulator's network: hosts with NICs of two ports each, a wire between every pair of NICs in
// each direction, and all that can happen to a datagram on it. Time is virtual; every fate is drawn
// from a seed.
//
// Knows datagrams and ports. Does not know engines, messages or what is right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "nic/port.h"
#include "sim/datagrams.h"
#include "sim/findings.h"
#include "sim/noise.h"
#include "sim/wire.h"

namespace pullman::sim {

class SimPort;

class Network {
 public:
  Network(std::size_t hosts, std::uint64_t seed, Findings& findings);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  Instant now() const { return now_; }
  std::size_t hosts() const { return hosts_; }
  std::size_t nics() const { return nics_; }
  // Of the first NICs of two hosts, or of those named.
  WireFaults& wire(std::size_t from, std::size_t to) {
    return wire(Plug{static_cast<std::uint8_t>(from), 0}, Plug{static_cast<std::uint8_t>(to), 0});
  }
  WireFaults& wire(Plug from, Plug to) { return wire_of(from, to).faults; }
  // How a NIC reaches another: those of one number are on one link, and there is no way between
  // others, unless it is said otherwise.
  void set_reach(nic::Reach alike, nic::Reach across) { reach_ = {alike, across}; }
  nic::Reach reach(Endpoint from, Endpoint to) const {
    return from.nic == to.nic ? reach_.alike : reach_.across;
  }
  std::vector<Partition>& partitions() { return partitions_; }
  std::vector<Ailment>& ailments() { return ailments_; }
  void trouble(const NicTrouble& trouble);
  // What the NIC says of itself.
  bool link_up(Endpoint at) const { return !troubled(at, NicTrouble::Kind::kUnplugged); }
  bool troubled(Endpoint at, NicTrouble::Kind kind) const;
  // In order of time. They do not end with the faults: a narrow path is no fault.
  std::vector<Narrowing>& narrowings() { return narrowings_; }
  // The network says, truly or not, what the path carries; 0: it has said nothing.
  void tell(std::size_t from, std::size_t to, std::size_t bytes) {
    told_[from * hosts_ + to] = bytes;
  }
  std::size_t told(std::size_t from, std::size_t to) const { return told_[from * hosts_ + to]; }
  Noise& noise() { return noise_.chances; }
  void end_faults();

  // Whether hosts say so, to whom it comes from, when a datagram comes to a port that nobody has
  // (ICMP), and the network lets it pass.
  void set_refuses(bool refuses) { refuses_ = refuses; }
  // Somebody says to `hearer` that nobody listens at `at`,
  // and quotes of the packet what he knows of it.
  void refuse(Endpoint at, Endpoint hearer, Duration delay = Duration(0),
              std::span<const std::byte> packet = {});

  // For scenarios: sees every datagram first; true drops it. And sees what became of each.
  void set_drop_rule(std::function<bool(const Passing&)> rule) { drop_rule_ = std::move(rule); }
  void set_observer(std::function<void(const Passing&)> observer) {
    observer_ = std::move(observer);
  }

  // The NIC has another address from now on; who opens a port there has it.
  void renumber(Plug at) { ++generations_[place_of({at.host, Channel::kCommand, at.nic})]; }
  std::uint8_t generation(Endpoint at) const { return generations_[place_of(at)]; }
  // A port at `at`; the one there before is gone, or hears nothing from now on.
  std::unique_ptr<nic::Port> open(Endpoint at, const PortPlan& plan);
  const SimPort* port(Endpoint at) const { return ports_[at.index()]; }
  // Whether receive() or poll_events() of one of the host's ports has something now.
  bool has_work(std::size_t host) const;
  // The host's process dies: nothing it sends from now on leaves.
  void mute(std::size_t host, bool on) { muted_[host] = on; }

  // The next arrival (or resolved address); kNever if nothing is on its way.
  Instant next_event() const { return heap_.empty() ? kNever : heap_.front().at; }
  // Moves time forward and puts what has arrived into the ports.
  void advance(Instant now);

  // Puts a datagram on the wire to `to` as if it had come from outside.
  void inject(Endpoint from, Endpoint to, std::span<const std::byte> bytes, Duration delay);

  const NetworkCounters& counters() const { return counters_; }
  // Of all that was sent, in order: equal for equal seeds.
  std::uint64_t digest() const { return digest_; }

  // For ports.
  void attach(Endpoint at, SimPort& port);
  void detach(Endpoint at, const SimPort& port);
  void transmit(Endpoint from, Endpoint to, std::span<const std::byte> head,
                std::span<const std::byte> payload);
  void wake_at(Instant when, Endpoint at);
  bool chance(std::uint64_t millionths) {
    return millionths != 0 && !calm_ && random_.chance(millionths);
  }
  void count_rejected() { ++counters_.lost; }
  Datagrams& datagrams() { return datagrams_; }
  Findings& findings() { return findings_; }

 private:
  static std::size_t place_of(Endpoint nic) { return nic.index() / 2; }
  struct Routes {
    nic::Reach alike = nic::Reach::kDirect;
    nic::Reach across = nic::Reach::kNone;
  };
  struct Wire {
    WireFaults faults;
    Instant busy_until{};
    Instant unresolved_until{};
    std::array<Instant, 4> last_arrival{};  // per pair of channels, to keep order
  };
  struct Event {
    Instant at;
    std::uint64_t serial = 0;  // breaks ties in the order of sending
    Endpoint to;
    Datagrams::Slot slot = Datagrams::kNone;  // none: only wakes the port
    Endpoint from{};                          // of a datagram
    bool refusal = false;                     // without a datagram: `from` says that nobody listens
    std::array<std::byte, nic::PortEvent::kMaxQuoted> quoted{};  // of what was refused
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : serial > other.serial;
    }
  };

  Wire& wire_of(Plug from, Plug to);
  void pass(Datagrams::Slot slot, Passing& passing);
  const Partition* partition_of(const Passing& passing) const;
  bool nic_is_dead(const Passing& passing) const;
  bool unresolved(const Passing& passing, Wire& wire) const;
  WireFaults faults_of(const Wire& wire, const Passing& passing) const;
  bool too_long(const Passing& passing);
  Instant arrival_on(Wire& wire, const WireFaults& faults, Passing& passing);
  void damage(Datagrams::Slot slot, const WireFaults& faults, Passing& passing);
  void arrive(const Event& event);
  void answer_refused(const Event& event, std::span<const std::byte> packet);
  void push(const Event& event);
  void note(const Passing& passing);

  std::size_t hosts_;
  Random random_;
  Findings& findings_;
  Datagrams datagrams_;
  Instant now_{};
  // Of each pair of NICs, by their numbers, those of all pairs of hosts: once one is in use.
  std::array<std::vector<Wire>, kMaxNics * kMaxNics> wires_;
  std::vector<Partition> partitions_;
  std::vector<Ailment> ailments_;
  std::vector<NicTrouble> troubles_;
  Routes reach_;
  std::vector<Narrowing> narrowings_;
  std::vector<std::size_t> told_;
  NoiseMaker noise_;
  std::array<SimPort*, kMaxEndpoints> ports_{};
  std::array<std::uint8_t, kMaxEndpoints / 2> generations_{};
  std::size_t nics_ = 1;  // that any host has
  std::array<bool, kNetworkHosts> muted_{};
  std::vector<Event> heap_;
  std::uint64_t serial_ = 0;
  std::function<bool(const Passing&)> drop_rule_;
  std::function<void(const Passing&)> observer_;
  NetworkCounters counters_;
  std::uint64_t digest_ = 0;
  bool calm_ = false;  // the faults have ended
  bool refuses_ = true;
};

}  // namespace pullman::sim
