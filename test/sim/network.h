// The simulator's network: hosts with NICs of two ports each, a wire between every pair of NICs in
// each direction, and all that can happen to a datagram on it. Time is virtual; every fate is drawn
// from a seed.
//
// It knows datagrams and ports, but no engines, messages or rules of right and wrong.
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
  // Returns the wire between the first NICs of two hosts, or between those named.
  WireFaults& wire(std::size_t from, std::size_t to) {
    return wire(Plug{static_cast<std::uint8_t>(from), 0}, Plug{static_cast<std::uint8_t>(to), 0});
  }
  WireFaults& wire(Plug from, Plug to) { return wire_of(from, to).faults; }
  // Sets how a NIC reaches another: by default NICs of one number share a link, and there is no
  // route between others.
  void set_reach(nic::Reach alike, nic::Reach across) { reach_ = {alike, across}; }
  // Sets it for each pair of ports: for hosts that have no network in common.
  void set_reach_rule(std::function<nic::Reach(Endpoint, Endpoint)> rule) {
    reach_rule_ = std::move(rule);
  }
  nic::Reach reach(Endpoint from, Endpoint to) const {
    if (reach_rule_) return reach_rule_(from, to);
    return from.nic == to.nic ? reach_.alike : reach_.across;
  }
  std::vector<Partition>& partitions() { return partitions_; }
  std::vector<Ailment>& ailments() { return ailments_; }
  void trouble(const NicTrouble& trouble);
  // Whether the NIC reports its link as up.
  bool link_up(Endpoint at) const { return !troubled(at, NicTrouble::Kind::kUnplugged); }
  bool troubled(Endpoint at, NicTrouble::Kind kind) const;
  // These NICs of the host give it nothing now.
  void overlook(std::size_t host, std::uint32_t nics) { overlooked_.at(host) = nics; }
  bool overlooks(Endpoint at) const { return (overlooked_[at.host] >> at.nic & 1) != 0; }
  // In order of time. They outlast the faults: a narrow path is no fault.
  std::vector<Narrowing>& narrowings() { return narrowings_; }
  // The network reports the path MTU, rightly or not; 0: it has reported none.
  void tell(std::size_t from, std::size_t to, std::size_t bytes) {
    told_[from * hosts_ + to] = bytes;
  }
  std::size_t told(std::size_t from, std::size_t to) const { return told_[from * hosts_ + to]; }
  Noise& noise() { return noise_.chances; }
  void end_faults();

  // Sets whether hosts answer a datagram to a closed port (ICMP), if the network lets the answer
  // pass.
  void set_refuses(bool refuses) { refuses_ = refuses; }
  // Tells `hearer` that no port is open at `at`, quoting the start of `packet` as far as it is
  // known.
  void refuse(Endpoint at, Endpoint hearer, Duration delay = Duration(0),
              std::span<const std::byte> packet = {});

  // For scenarios: the rule sees every datagram first and drops it by true; the observer sees each
  // one's fate.
  void set_drop_rule(std::function<bool(const Passing&)> rule) { drop_rule_ = std::move(rule); }
  void set_observer(std::function<void(const Passing&)> observer) {
    observer_ = std::move(observer);
  }

  // Gives the NIC another address; a port opened there has it.
  void renumber(Plug at) { ++generations_[place_of({at.host, Channel::kCommand, at.nic})]; }
  std::uint8_t generation(Endpoint at) const { return generations_[place_of(at)]; }
  // Opens a port at `at`; an earlier one there receives nothing from now on.
  std::unique_ptr<nic::Port> open(Endpoint at, const PortPlan& plan);
  const SimPort* port(Endpoint at) const { return ports_[at.index()]; }
  // Returns whether receive() or poll_events() of one of the host's ports has something.
  bool has_work(std::size_t host) const;
  // The host's process has died: nothing it sends leaves.
  void mute(std::size_t host, bool on) { muted_[host] = on; }

  // Returns the time of the next arrival or resolved address; kNever if none is under way.
  Instant next_event() const { return heap_.empty() ? kNever : heap_.front().at; }
  // Moves time forward and puts arrived datagrams into the ports.
  void advance(Instant now);

  // Puts a datagram on the wire to `to` as if it came from outside.
  void inject(Endpoint from, Endpoint to, std::span<const std::byte> bytes, Duration delay);

  const NetworkCounters& counters() const { return counters_; }
  // Returns the digest of everything sent, in order: equal for equal seeds.
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
    std::uint64_t serial = 0;  // breaks ties by the order of sending
    Endpoint to;
    Datagrams::Slot slot = Datagrams::kNone;  // none: only wakes the port
    Endpoint from{};                          // of a datagram, or the closed port of a refusal
    bool refusal = false;                     // no datagram: `from` is a closed port
    std::array<std::byte, nic::PortEvent::kMaxQuoted> quoted{};  // of the refused packet
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
  // For each pair of NIC numbers, the wires of all pairs of hosts; empty until one is used.
  std::array<std::vector<Wire>, kMaxNics * kMaxNics> wires_;
  std::vector<Partition> partitions_;
  std::vector<Ailment> ailments_;
  std::vector<NicTrouble> troubles_;
  Routes reach_;
  std::function<nic::Reach(Endpoint, Endpoint)> reach_rule_;
  std::vector<Narrowing> narrowings_;
  std::vector<std::size_t> told_;
  std::vector<std::uint32_t> overlooked_;  // of each host a bit for each NIC
  NoiseMaker noise_;
  std::array<SimPort*, kMaxEndpoints> ports_{};
  std::array<std::uint8_t, kMaxEndpoints / 2> generations_{};
  std::size_t nics_ = 1;  // the most of any host
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
