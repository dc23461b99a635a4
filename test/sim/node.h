// One host: its process's engine, started, crashed and started again, and when the process runs.
//
// It knows when progress() is to be called and what must balance after it, but no messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "relay/relay.h"
#include "sim/memory.h"
#include "sim/network.h"

namespace pullman::sim {

struct NicPlan {
  PortPlan command;
  PortPlan data;
  std::uint32_t mbps = 0;
  bool stream = false;
  std::optional<std::size_t> address_of = std::nullopt;  // a further address of that NIC
};

// How a process shares its processor with others: it runs for about so long, then it does not for
// about so long, and so on. 0: the processor is its own.
struct TimeSlices {
  Duration runs{0};
  Duration waits{0};
};

struct NodePlan {
  Config config;
  PortPlan command;  // of the first NIC
  PortPlan data;
  std::uint32_t mbps = 0;
  std::vector<NicPlan> more;   // further NICs
  std::size_t late = 0;        // the last so many of them come with join()
  std::uint64_t identity = 0;  // by which it names its host; 0: its own
  MemoryFaults memory;         // of what it shares with others of that identity
  wire::Protection protection = wire::Protection::kOff;
  std::vector<std::uint64_t> job_keys;  // each made of a number
  std::string relay;                    // as Config::relay; empty: none

  std::size_t nics() const { return 1 + more.size(); }
  Duration turn_gap = std::chrono::microseconds(1);  // from one progress() to the next at least
  Duration poll_interval{0};  // of a program that polls; 0: runs when there is something to do
  bool polls_once = false;    // one progress() per poll, else until there is nothing to do
  TimeSlices slices;
};

class Node {
 public:
  Node(Network& network, SharedMemory& memory, std::uint8_t host, const NodePlan& plan,
       std::uint64_t seed);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::uint8_t host() const { return host_; }
  const NodePlan& plan() const { return plan_; }
  // Identifies one process of this host: no two have the same.
  std::uint32_t process() const { return incarnation_ * kMaxHosts + host_; }
  bool alive() const { return engine_ != nullptr; }
  bool stalled() const { return stalled_until_ > network_.now(); }
  engine::Engine& engine() { return *engine_; }
  relay::Relay& relay() { return *relay_; }  // there must be one
  nic::Address address() const;              // of the first NIC
  // Returns where to call that address, as Context::connect() does; nothing if nothing reaches it.
  std::optional<nic::Address> address_to_call(const nic::Address& address) const;
  // Returns whether the relay, if there is one, holds nothing, nor the engine receives but its own.
  bool has_no_receives() const;
  std::uint64_t identity() const { return plan_.identity != 0 ? plan_.identity : 1u + host_; }

  // The number of NICs present, and their names in the engine.
  std::size_t nics_by_now() const { return plan_.nics() - plan_.late + joined_; }
  std::string name_of(std::size_t nic) const;
  bool is_stream(std::size_t nic) const { return nic > 0 && plan_.more[nic - 1].stream; }

  void boot();
  // Adds the next of the late NICs, if there is one left.
  void join();
  // Gives the NIC another address.
  void move(std::uint8_t nic);
  // Ends the process. With `quietly` its last packets do not leave, as after kill -9. All its
  // requests end with kClosed.
  void end(bool quietly);
  // Closes in good order, as Context::close() does: peers that only the relay reaches end first.
  void begin_close();
  bool drained() const { return close_begun_ && engine_->drained(); }

  // Restores all rails that are kept out, as an operator would (Config::sticky_rails).
  void restore_rails();
  void stall_until(Instant until) { stalled_until_ = std::max(stalled_until_, until); }
  // Sets the chance, in millionths, that a NIC that has moved since cannot resolve an address.
  void fail_resolving(std::uint64_t chance) {
    plan_.command.resolve_failure = plan_.data.resolve_failure = chance;
    for (NicPlan& nic : plan_.more) {
      nic.command.resolve_failure = nic.data.resolve_failure = chance;
    }
  }
  void set_poll_interval(Duration interval) { plan_.poll_interval = interval; }
  void set_slices(TimeSlices slices) { plan_.slices = slices; }
  // Overwrites the memory that it shares with others.
  void corrupt_memory() { memory_.corrupt(process()); }
  void jump_clock(Duration by);
  Instant network_now() const { return network_.now(); }
  // Returns the time by this process's clock.
  Instant local_now() const { return network_.now() + clock_offset_; }

  // Returns when it should run next, in network time; kNever if nothing is due.
  Instant wake() const;
  // Also runs at `at`, for the caller.
  void wake_at(Instant at) { own_wake_ = at; }
  void turn();
  // The caller has used the engine, which may have moved its deadline.
  void touched();

 private:
  engine::NicPorts open(std::uint8_t nic);
  void set_nic(std::uint8_t nic);
  void go_on_closing();
  Instant earliest_run(Instant at) const;
  void note_turn(std::size_t received, std::uint64_t sent);
  void share_processor(bool was_whole_turn);
  std::size_t end_interrupted_turn();
  std::size_t progress(Instant now);
  void audit();

  Network& network_;
  SharedMemory& memory_;
  const std::uint8_t host_;
  NodePlan plan_;
  Random random_;
  Random stops_;             // where in a turn it stops
  std::uint8_t joined_ = 0;  // late NICs that have come
  std::optional<SimPairs> pairs_;
  std::unique_ptr<relay::Relay> relay_;  // null: none
  std::unique_ptr<engine::Engine> engine_;
  std::uint32_t incarnation_ = 0;
  std::size_t relay_slot_ = 0;  // in the engine, which later NICs come behind
  bool closing_ = false;
  bool close_begun_ = false;  // of the engine
  Duration clock_offset_{0};
  Instant deadline_ = kNever;  // of the engine, in network time
  Instant own_wake_ = kNever;
  Instant last_turn_{};
  Instant last_look_{};        // at the clock, when the engine was called last
  bool took_nothing_ = false;  // by the last turn
  Instant stalled_until_{};
  bool in_mid_turn_ = false;  // its time slice ended there
  Instant slice_end_{};
  std::uint32_t idle_turns_ = 0;  // turns in a row that were asked for and did nothing
};

}  // namespace pullman::sim
