#include "context/tracer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <utility>

#include "base/host_name.h"
#include "base/log.h"
#include "context/clock.h"
#include "nic/trace/traced_port.h"

namespace pullman {
namespace {

TraceOwner next_owner() {
  static std::atomic<unsigned> contexts{0};  // that have had a trace
  return {.host = host_name(), .process = getpid(), .context = ++contexts};
}

// Returns the time since 1970 at the origin of the steady clock.
Duration behind_1970() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(wall) - read_clock().time_since_epoch();
}

// The program may go to another folder. Where that one cannot be found out the path stays as it is.
std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

}  // namespace

std::unique_ptr<Tracer> Tracer::make(const Config& config, const Instant& now) {
  if (config.trace.empty() || config.trace == "0") return nullptr;
  std::error_code error;
  if (config.trace.ends_with('/') || std::filesystem::is_directory(config.trace, error)) {
    throw Error(
        Status::kBadOption,
        fmt::format("trace is '{}', a folder: name a file in it, such as {} "
                    "(PULLMAN_TRACE)",
                    config.trace, (std::filesystem::path(config.trace) / "%h.%p.pcapng").string()));
  }
  return std::make_unique<Tracer>(config, now);
}

Tracer::Tracer(const Config& config, const Instant& now)
    : wanted_(absolute(config.trace)),
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
