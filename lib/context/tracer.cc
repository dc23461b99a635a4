#include "context/tracer.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <exception>
#include <utility>

#include "base/log.h"
#include "context/clock.h"
#include "nic/trace/traced_port.h"

namespace pullman {
namespace {

TraceOwner next_owner() {
  static std::atomic<unsigned> contexts{0};  // that have had a trace
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  return {.host = host.data(), .process = getpid(), .context = ++contexts};
}

// Returns the time since 1970 at the origin of the steady clock.
Duration behind_1970() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(wall) - read_clock().time_since_epoch();
}

}  // namespace

// The path is made absolute, since the program may go to another folder.
Tracer::Tracer(const Config& config, const Instant& now)
    : wanted_(std::filesystem::absolute(config.trace).string()),
      owner_(next_owner()),
      ring_(config.trace_bytes, now),
      signal_(TraceSignal::number_of(config.trace_signal)),
      signals_(signal_.count()) {
  const auto folder = trace_path(wanted_, owner_, "").parent_path();
  if (access(folder.c_str(), W_OK | X_OK) == 0) return;
  log().warn("no trace can be written to {}: make the folder, or name another (PULLMAN_TRACE)",
             folder.string());
}

std::vector<engine::NicPorts> Tracer::wrap(std::vector<engine::NicPorts> nics) {
  for (engine::NicPorts& nic : nics) nic = wrap(std::move(nic));
  return nics;
}

engine::NicPorts Tracer::wrap(engine::NicPorts nic) {
  nic.command = wrap(std::move(nic.command), nic.device, "command");
  nic.data = wrap(std::move(nic.data), nic.device, "data");
  return nic;
}

std::unique_ptr<nic::Port> Tracer::wrap(std::unique_ptr<nic::Port> port, const nic::Device& device,
                                        std::string_view channel) {
  const auto number = ring_.add_port(
      {.name = fmt::format("{} {}", device.name, channel),
       .description = fmt::format("{} at {}", device.driver, nic::to_string(port->address())),
       .address = port->address()});
  if (!number) return port;
  return std::make_unique<nic::trace::TracedPort>(std::move(port), ring_, *number);
}

void Tracer::tend(Instant now, const engine::PeerFailures& failures) {
  if (failures.count != failures_ && now >= failure_due_) {
    failures_ = failures.count;
    failure_due_ = now + kFailurePause;
    write(Cause::kFailure, failures);
  }
  if (const std::uint32_t signals = signal_.count(); signals != signals_) {
    signals_ = signals;
    write(Cause::kSignal, failures);
  }
}

void Tracer::end(Instant now, const engine::PeerFailures& failures) {
  tend(now, failures);
  write(Cause::kEnd, failures);
}

// Whatever goes wrong, the turn that it is called in goes on without that file.
void Tracer::write(Cause cause, const engine::PeerFailures& failures) noexcept {
  try {
    std::string_view name;
    std::string comment = "the context was closed";
    if (cause == Cause::kFailure) {
      name = "failure";
      comment = fmt::format("the peer at {} has failed: {}", nic::to_string(failures.address),
                            to_sentence(failures.why));
    } else if (cause == Cause::kSignal) {
      name = "signal";
      comment = "asked for by a signal";
    }
    write_trace(ring_, trace_path(wanted_, owner_, name), comment, behind_1970());
  } catch (const std::exception& error) {
    log().warn("the trace is not written (PULLMAN_TRACE): {}", error.what());
  }
}

}  // namespace pullman
