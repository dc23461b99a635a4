// The API's body: it owns the clock, opens the NICs, and hands everything else to the engine.
#include "pullman/context.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "engine/engine.h"
#include "nic/drivers.h"

namespace pullman {
namespace {

// The one clock. A reading never runs backwards (steady), and the core sees it as a value.
Instant read_clock() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

// The kernel's, unless a test asks for a run that repeats.
KeyedRandom::Key key_for(const Config& config) {
  if (config.seed != 0) return KeyedRandom::key_from_seed(config.seed);
  KeyedRandom::Key key;
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    throw Error(Status::kNoDevice, "the kernel gave no random bytes: getrandom() failed");
  }
  return key;
}

// A command packet holds a tiny message, a HELLO with its riders, and the longest ACK.
constexpr std::size_t kLeastCommandBytes = 816;
constexpr std::size_t kTinyOverhead = 48;

// Idle turns, some 40 us of them, before wait() lets others run between turns.
constexpr std::uint32_t kTurnsBeforeYield = 128;

nic::PortOptions port_options(const Config& config) {
  using std::chrono::microseconds;
  const auto busy_poll = std::chrono::ceil<microseconds>(config.busy_poll);
  return {.receive_packets = config.receive_packets,
          .receive_buffer_bytes = config.receive_buffer_bytes,
          .busy_poll_us = static_cast<unsigned>(busy_poll.count()),
          .offloads = config.offloads};
}

engine::NicPorts open_nic(const Config& config) {
  const auto driver =
      nic::make_driver(nic::driver_for(config.driver, config.provider), config.provider);
  const auto devices = nic::devices_to_use(*driver, config.nics);
  engine::NicPorts nic{.device = devices.front(), .command = nullptr, .data = nullptr};
  if (config.packet_bytes != 0) {
    nic.device.packet_bytes = std::min(nic.device.packet_bytes, config.packet_bytes);
  }
  const std::size_t command_bytes = std::min(
      std::max(kLeastCommandBytes, config.tiny_bytes + kTinyOverhead), nic.device.packet_bytes);
  if (command_bytes < kLeastCommandBytes) {
    throw nic::NicError(
        fmt::format("NIC {} carries packets of {} bytes only: at least {} are needed",
                    nic.device.name, nic.device.packet_bytes, kLeastCommandBytes));
  }
  nic::PortOptions options = port_options(config);
  options.packet_bytes = command_bytes;
  options.port = config.port;
  nic.command = driver->open(nic.device, options);
  nic.data = driver->open(nic.device, port_options(config));
  return nic;
}

}  // namespace

struct Context::State {
  State(const Config& chosen, engine::NicPorts nic)
      : config(chosen), engine(chosen, one(std::move(nic)), key_for(chosen), read_clock()) {}

  static std::vector<engine::NicPorts> one(engine::NicPorts nic) {
    std::vector<engine::NicPorts> nics;
    nics.push_back(std::move(nic));
    return nics;
  }

  Config config;
  engine::Engine engine;
  std::optional<Status> closed;  // how close() ended
};

Context::Context(const Config& config) {
  config.validate();
  try {
    state_ = std::make_unique<State>(config, open_nic(config));
  } catch (const nic::NicError& error) {
    throw Error(Status::kNoDevice, error.what());
  }
}

Context::~Context() {
  close();
}

std::string Context::address() const {
  return nic::to_string(state_->engine.address());
}

PeerId Context::connect(std::string_view address) {
  std::string why;
  const auto parsed = nic::parse(address, 0, why);
  if (!parsed) throw Error(Status::kInvalidArgument, why);
  if (nic::port_of(*parsed) == 0 && parsed->kind != 255) {
    throw Error(Status::kInvalidArgument,
                fmt::format("'{}' has no port: write HOST:PORT, as address() says it", address));
  }
  const auto connected = state_->engine.connect(read_clock(), *parsed);
  if (connected.status != Status::kOk) {
    throw Error(connected.status, to_sentence(connected.status));
  }
  return connected.peer;
}

std::optional<PeerId> Context::accept() {
  return state_->engine.accept();
}
PeerState Context::peer_state(PeerId peer) const {
  return state_->engine.peer_state(peer);
}
Status Context::peer_status(PeerId peer) const {
  return state_->engine.peer_status(peer);
}

Status Context::send(PeerId peer, Tag tag, std::span<const std::byte> bytes, Request& request) {
  return state_->engine.send(read_clock(), peer, tag, bytes, request);
}

Status Context::receive(PeerId source, Tag tag, Tag ignore, std::span<std::byte> buffer,
                        Request& request) {
  return state_->engine.receive(read_clock(), source, tag, ignore, buffer, request);
}

bool Context::cancel(Request& request) {
  return state_->engine.cancel(request);
}

std::optional<Probe> Context::probe(PeerId source, Tag tag, Tag ignore) {
  return state_->engine.probe(source, tag, ignore);
}

std::size_t Context::progress() {
  return state_->engine.progress(read_clock());
}

bool Context::test(Request& request) {
  if (!request.done()) progress();
  return request.done();
}

Status Context::wait(Request& request, std::chrono::nanoseconds timeout) {
  if (request.done()) return request.status();
  const Instant begin = read_clock();
  std::uint32_t idle = 0;  // turns in a row that brought nothing
  for (Instant now = begin;; now = read_clock()) {
    idle = state_->engine.progress(now) == 0 ? idle + 1 : 0;
    if (request.done()) return request.status();
    // Two that wait for each other on one processor must take turns shorter than the scheduler's.
    if (idle >= kTurnsBeforeYield) std::this_thread::yield();
    if (now - begin >= timeout) return Status::kTimedOut;
  }
}

void Context::disconnect(PeerId peer) {
  state_->engine.disconnect(read_clock(), peer);
}

Status Context::close(std::chrono::nanoseconds timeout) {
  if (state_->closed) return *state_->closed;
  const Instant begin = read_clock();
  state_->engine.begin_close(begin);
  for (Instant now = begin; now - begin <= timeout; now = read_clock()) {
    state_->engine.progress(now);
    if (state_->engine.drained()) break;
  }
  state_->closed = state_->engine.drained() ? Status::kOk : Status::kTimedOut;
  state_->engine.abort();
  return *state_->closed;
}

Status Context::close() {
  return close(state_->config.close_timeout);
}

Stats Context::stats() const {
  return state_->engine.stats();
}
std::string Context::dump() const {
  return state_->engine.dump();
}

}  // namespace pullman
