#include "context/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>

#include "base/log.h"
#include "context/self_test_findings.h"

namespace pullman {
namespace {

const char* plural(std::size_t count) {
  return count == 1 ? "" : "s";
}

void say_what_is_known(const Config& config, const std::vector<engine::NicPorts>& nics) {
  const std::vector<NicFacts> facts = read_nic_facts(nics);
  const std::vector<std::string> lines = judge_host(config, facts, read_host_facts());
  for (const std::string& line : lines) log().warn("self-test: {}", line);
  if (!lines.empty()) return;
  say(fmt::format("self-test: {} NIC{}, buffers, and the limits of this process: all is well",
                  facts.size(), plural(facts.size())));
}

}  // namespace

SelfTest::SelfTest(const Config& config, const std::vector<engine::NicPorts>& nics) noexcept {
  try {
    say_what_is_known(config, nics);
  } catch (const std::exception&) {
    due_ = kNever;
  }
}

void SelfTest::tend(Instant now, engine::Engine& engine) noexcept {
  if (now < due_) return;
  due_ = now + kPause;
  try {
    find_peers(now, engine);
    for (Tested& tested : tested_) tend(now, engine, tested);
    if (has_ended(now)) due_ = kNever;
  } catch (const std::exception&) {
    due_ = kNever;
  }
}

void SelfTest::find_peers(Instant now, const engine::Engine& engine) {
  if (tested_.size() == kPeers || now >= ends_at_) return;
  for (const PeerId peer : engine.inspector().connected_peers(2 * kPeers)) {
    const bool known = std::any_of(tested_.begin(), tested_.end(),
                                   [peer](const Tested& one) { return one.peer == peer; });
    if (known) continue;
    if (tested_.empty()) ends_at_ = now + kLongest;
    tested_.push_back({.peer = peer, .due = now + kRails});
    if (tested_.size() == kPeers) return;
  }
}

// A peer that has ended meanwhile is not tested: its program has heard how.
void SelfTest::tend(Instant now, engine::Engine& engine, Tested& tested) {
  switch (tested.stage) {
    case Stage::kConnected:
      if (now < tested.due) return;
      tested.due = now + kPatience;
      tested.stage = engine.begin_check(now, tested.peer, kLimit) == Status::kOk ? Stage::kChecked
                                                                                 : Stage::kDone;
      return;
    case Stage::kChecked: {
      const bool connected = engine.inspector().peer_state(tested.peer) == PeerState::kConnected;
      const auto rails = connected ? engine.check_result(tested.peer) : std::nullopt;
      if (connected && !rails && now < tested.due) return;
      tested.stage = Stage::kDone;
      if (rails) report(engine, tested.peer, *rails);
      return;
    }
    case Stage::kDone:
      return;
  }
}

void SelfTest::report(const engine::Engine& engine, PeerId peer,
                      const std::vector<RailCheck>& rails) {
  report_bursts(engine);
  const std::string address = engine.inspector().address_of(peer);
  std::size_t fine = 0;
  for (const RailCheck& rail : rails) {
    const std::string line = judge_rail(address, rail);
    if (line.empty()) {
      ++fine;
    } else {
      log().warn("self-test: {}", line);
    }
  }
  if (fine != rails.size() || fine == 0) return;
  say(fmt::format("self-test: {} rail{} to {}: packets of all sizes pass both ways", fine,
                  plural(fine), address));
}

// Only once packets have left is it known whether the device takes them.
void SelfTest::report_bursts(const engine::Engine& engine) {
  const std::uint64_t refused = engine.inspector().stats().nic_bursts_refused;
  if (refused == 0 || bursts_reported_) return;
  bursts_reported_ = true;
  log().warn(
      "self-test: {} socket{} refused bursts and send{} packets one by one: a device takes no "
      "checksums off the kernel; as root, for each NIC in use: ethtool -K NIC tx on",
      refused, refused == 1 ? " was" : "s were", refused == 1 ? "s" : "");
}

bool SelfTest::has_ended(Instant now) const {
  const bool all = std::all_of(tested_.begin(), tested_.end(),
                               [](const Tested& one) { return one.stage == Stage::kDone; });
  return all && (tested_.size() == kPeers || now >= ends_at_);
}

}  // namespace pullman
