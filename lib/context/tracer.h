// The trace of a context (Config::trace): its ports record their packets in a ring, which is
// written to a file when the context closes, when a peer has failed, and when a signal asks for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "context/trace_file.h"
#include "context/trace_signal.h"
#include "engine/nics/nic_ports.h"
#include "engine/session/peer_failures.h"
#include "nic/trace/ring.h"
#include "pullman/config.h"

namespace pullman {

class Tracer {
 public:
  // Null: Config::trace names no file. Throws Error(kBadOption) if it names a folder. `now`
  // outlives the tracer: the time of the turn that is being made.
  static std::unique_ptr<Tracer> make(const Config& config, const Instant& now);

  // Warns if nothing can be written there.
  Tracer(const Config& config, const Instant& now);

  // Returns the ports, which record from now on.
  std::vector<engine::NicPorts> wrap(std::vector<engine::NicPorts> nics);
  engine::NicPorts wrap(engine::NicPorts nic);

  // Writes what is due. Called now and then, at next_deadline() at the latest.
  void tend(Instant now, const engine::PeerFailures& failures);
  Instant next_deadline(Instant now) const { return now + kLook; }

  // The context is closed: writes the end.
  void end(Instant now, const engine::PeerFailures& failures);

 private:
  // How soon a signal is seen by a program that sleeps.
  static constexpr Duration kLook = std::chrono::milliseconds(100);
  // Files of failures are not written more often than that.
  static constexpr Duration kFailurePause = std::chrono::minutes(1);

  std::unique_ptr<nic::Port> wrap(std::unique_ptr<nic::Port> port, const nic::Device& device,
                                  std::string_view channel);
  enum class Cause : std::uint8_t {
    kEnd,      // the context was closed
    kFailure,  // a peer has failed
    kSignal,   // a person asked
  };
  void write(Cause cause, const engine::PeerFailures& failures) noexcept;

  const std::string wanted_;
  const TraceOwner owner_;
  nic::trace::Ring ring_;
  TraceSignal signal_;
  std::uint32_t signals_ = 0;   // that were answered
  std::uint64_t failures_ = 0;  // that were written
  Instant failure_due_ = Instant::min();
};

}  // namespace pullman
