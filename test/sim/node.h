// One host: its process's engine, booted, crashed and booted again, and when the process gets to
// run.
//
// Knows when progress() has to be called and what must balance after it. Does not know messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "sim/network.h"

namespace pullman::sim {

struct NicPlan {
  PortPlan command;
  PortPlan data;
  std::uint32_t mbps = 0;
  bool stream = false;
  std::optional<std::size_t> address_of =
      std::nullopt;  // it is a further address of the NIC of that number
};

struct NodePlan {
  Config config;
  PortPlan command;  // of the first NIC
  PortPlan data;
  std::uint32_t mbps = 0;
  std::vector<NicPlan> more;   // NICs
  std::size_t late = 0;        // so many of them, the last ones, come with join()
  std::uint64_t identity = 0;  // that it names its host by; 0: its own

  std::size_t nics() const { return 1 + more.size(); }
  Duration turn_gap = std::chrono::microseconds(1);  // from one progress() to the next, at least
  Duration poll_interval{0};  // 0: runs when there is something to do. Else a program that polls
  bool polls_once = false;    // one progress() per poll, else until there is nothing to do
};

class Node {
 public:
  Node(Network& network, std::uint8_t host, const NodePlan& plan, std::uint64_t seed);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::uint8_t host() const { return host_; }
  const NodePlan& plan() const { return plan_; }
  // Names one process of this host: no two have the same.
  std::uint32_t process() const { return incarnation_ * kMaxHosts + host_; }
  bool alive() const { return engine_ != nullptr; }
  bool stalled() const { return stalled_until_ > network_.now(); }
  engine::Engine& engine() { return *engine_; }
  nic::Address address() const;  // of the first NIC
  std::uint64_t identity() const { return plan_.identity != 0 ? plan_.identity : 1u + host_; }

  // How many NICs it has by now, and what the engine calls them.
  std::size_t nics_by_now() const { return plan_.nics() - plan_.late + joined_; }
  std::string name_of(std::size_t nic) const;
  bool is_stream(std::size_t nic) const { return nic > 0 && plan_.more[nic - 1].stream; }

  void boot();
  // The next of the NICs that come late is there from now on, if there is one.
  void join();
  // The NIC has another address from now on.
  void move(std::uint8_t nic);
  // The process ends. With `quietly` its last packets never leave, as after kill -9. All its
  // requests end with kClosed.
  void end(bool quietly);

  // An operator takes back all rails that are kept out (Config::sticky_rails).
  void restore_rails();
  void stall_until(Instant until) { stalled_until_ = std::max(stalled_until_, until); }
  // The chance, in millionths, that a NIC that has moved since finds no way to an address.
  void fail_resolving(std::uint64_t chance) {
    plan_.command.resolve_failure = plan_.data.resolve_failure = chance;
    for (NicPlan& nic : plan_.more) {
      nic.command.resolve_failure = nic.data.resolve_failure = chance;
    }
  }
  void set_poll_interval(Duration interval) { plan_.poll_interval = interval; }
  void jump_clock(Duration by);
  Instant network_now() const { return network_.now(); }
  // What this process's clock says now.
  Instant local_now() const { return network_.now() + clock_offset_; }

  // When it should run next, in the network's time; kNever if nothing is due.
  Instant wake() const;
  // Runs at `at` for a reason of the caller's.
  void wake_at(Instant at) { own_wake_ = at; }
  void turn();
  // The caller used the engine: deadlines may have moved.
  void touched();

 private:
  engine::NicPorts open(std::uint8_t nic);
  void set_nic(std::uint8_t nic);
  Instant earliest_run(Instant at) const;
  void note_turn(std::size_t received, std::uint64_t sent);
  void audit();

  Network& network_;
  const std::uint8_t host_;
  NodePlan plan_;
  Random random_;
  std::uint8_t joined_ = 0;  // of the NICs that come late
  std::unique_ptr<engine::Engine> engine_;
  std::uint32_t incarnation_ = 0;
  Duration clock_offset_{0};
  Instant deadline_ = kNever;  // of the engine, in the network's time
  Instant own_wake_ = kNever;
  Instant last_turn_{};
  bool took_nothing_ = false;  // the last turn
  Instant stalled_until_{};
  std::uint32_t idle_turns_ = 0;  // turns in a row in which it had asked to run and did nothing
};

}  // namespace pullman::sim
