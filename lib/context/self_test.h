// The self-test of a context (Config::self_test): says in the log, one line each, what will make it
// slow or fail, what that means, and what to do. At the start it is what can be known without
// packets; then each rail to the first few peers is checked both ways. What is fine has a line,
// too.
//
// Has no clock of its own, and changes nothing but that rails are checked. It ends by itself, and
// early if there is no memory for what it says: no turn fails for it. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "engine/engine.h"
#include "engine/nics/nic_ports.h"
#include "pullman/config.h"

namespace pullman {

class SelfTest {
 public:
  // Says what is known of these NICs and of this host.
  SelfTest(const Config& config, const std::vector<engine::NicPorts>& nics) noexcept;

  // Goes on with it. Called now and then, at next_deadline() at the latest.
  void tend(Instant now, engine::Engine& engine) noexcept;
  Instant next_deadline(Instant now) const {
    return due_ == kNever ? kNever : std::max(due_, now + kLook);
  }

 private:
  static constexpr std::size_t kPeers = 8;
  // How soon after it is due a step is made.
  static constexpr Duration kLook = std::chrono::milliseconds(100);
  static constexpr Duration kPause = std::chrono::milliseconds(500);
  // Rails of a peer come up after it is connected.
  static constexpr Duration kRails = std::chrono::seconds(1);
  static constexpr Duration kLimit = std::chrono::seconds(1);  // of a check
  // New peers are looked for until so long after the first was found.
  static constexpr Duration kLongest = std::chrono::seconds(20);
  // A program that asks for checks all the time may keep ours from ending.
  static constexpr Duration kPatience = std::chrono::seconds(10);

  enum class Stage : std::uint8_t {
    kConnected,  // its rails may still come up
    kChecked,    // the check runs
    kDone,       // its result was said, or there is none
  };
  struct Tested {
    PeerId peer;
    Instant due{};  // when it is checked, then when the check is given up
    Stage stage = Stage::kConnected;
  };

  void find_peers(Instant now, const engine::Engine& engine);
  void tend(Instant now, engine::Engine& engine, Tested& tested);
  void report(const engine::Engine& engine, PeerId peer, const std::vector<RailCheck>& rails);
  void report_bursts(const engine::Engine& engine);
  bool has_ended(Instant now) const;

  Instant due_ = Instant::min();  // of the next step; kNever: it has ended
  Instant ends_at_ = kNever;      // when no more peers are looked for
  std::vector<Tested> tested_;
  bool bursts_reported_ = false;
};

}  // namespace pullman
