// Sets up rails, and handles what both ends tell each other about them (wire.md 9).
#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "engine/peer/rail_choice.h"
#include "engine/rails/rail_manager.h"

namespace pullman::engine {
namespace {

failover::NicEntry entry_of(const wire::NicInfo& nic) {
  return {.address = nic.command,
          .nic = nic.device,
          .mbps = nic.mbps,
          .packet_bytes = nic.data_packet_bytes,
          .distance = nic.distance,
          .stream = nic.stream};
}

failover::Ways ways_of(const wire::Ways& said) {
  failover::Ways ways;
  for (std::size_t i = 0; i < said.mine; ++i) {
    for (std::size_t j = 0; j < said.theirs; ++j) {
      ways.set(i, j, static_cast<nic::Reach>(said.reach[i][j]));
    }
  }
  return ways;
}

bool is_same_nic(const failover::NicEntry& one, const failover::NicEntry& other) {
  return one.nic == other.nic && one.stream == other.stream;
}

// Returns a bit for each address of that entry's NIC.
std::uint32_t addresses_of_nic(const std::vector<failover::NicEntry>& entries, std::size_t entry) {
  std::uint32_t bits = std::uint32_t{1} << entry;
  for (std::size_t i = 0; i < entries.size() && entry < entries.size(); ++i) {
    if (is_same_nic(entries[i], entries[entry])) bits |= std::uint32_t{1} << i;
  }
  return bits;
}

// Returns the pairs as the other end sees them: left and right are swapped.
std::vector<failover::Pair> swapped(std::vector<failover::Pair> pairs) {
  for (failover::Pair& pair : pairs) std::swap(pair.left, pair.right);
  return pairs;
}

// Lets rail 0 stand for the pair of its two NICs, whichever of their addresses it joins.
void put_home(std::vector<failover::Pair>& pairs, const std::vector<failover::NicEntry>& left,
              const std::vector<failover::NicEntry>& right,
              std::pair<std::uint8_t, std::uint8_t> home) {
  if (home.first >= left.size() || home.second >= right.size()) return;
  for (failover::Pair& pair : pairs) {
    const bool same = is_same_nic(left[pair.left], left[home.first]) &&
                      is_same_nic(right[pair.right], right[home.second]);
    if (same) std::tie(pair.left, pair.right) = home;
  }
}

// Writes which NICs rail 0 joins, as we see it.
void name_home(const Peer& peer, wire::Ways& ways) {
  const auto& theirs = peer.rails->theirs;
  const auto there = std::find_if(theirs.begin(), theirs.end(), [&](const wire::NicInfo& nic) {
    return nic::same_port(nic.command, peer.home.remote);
  });
  ways.home = peer.home.module;
  if (there != theirs.end()) ways.home_there = static_cast<std::uint8_t>(there - theirs.begin());
}

}  // namespace

void RailManager::start(Peer& peer, std::span<const wire::NicInfo> theirs) {
  peer.rails = std::make_unique<Rails>();
  peer.rails->theirs.assign(theirs.begin(), theirs.end());
  auto upkeep = std::make_unique<RailUpkeep>();
  upkeep->timer.name(TimerPurpose::kRailUpkeep, peer.id.index);
  upkeep->stream = peer.home.nic->device().stream;
  upkeep->relayed = peer.home.nic->device().relayed;
  upkeep->here = peer.home.module;
  upkeep->health.begin_up(peer.heard_at);
  upkeep->news.peer = peer.id;
  news_.handle_change(upkeep->news, true);
  peer.rails->upkeep[0] = std::move(upkeep);
}

// Returns how each of our NICs reaches each of the peer's, as our kernel and drivers see it.
wire::Ways RailManager::ways_to(const Peer& peer) const {
  const auto& theirs = peer.rails->theirs;
  wire::Ways ways{.mine = peer.told, .theirs = static_cast<std::uint8_t>(theirs.size())};
  name_home(peer, ways);
  for (std::size_t i = 0; i < peer.told; ++i) {
    const nic::Port& port = nics_.channel(i, ChannelKind::kCommand).port();
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      const bool alike = theirs[j].stream == nics_[i].device().stream;
      // Reach::kOwn is the way to another process of this host, and counts as kDirect.
      // Addresses of another host that lead here were cleared before.
      const nic::Reach reach = std::min(port.reach(theirs[j].command), nic::Reach::kDirect);
      ways.reach[i][j] = alike ? static_cast<std::uint8_t>(reach) : 0;
    }
  }
  return ways;
}

// Returns the WAYS that we tell, and pair by, whatever changes meanwhile. If our NICs are no longer
// those that HELLO named, none is to be paired: WAYS of no NICs do not fit.
const wire::Ways& RailManager::settle_ways(Peer& peer) {
  Rails& rails = *peer.rails;
  if (rails.our_ways.theirs == 0) {
    wire::Hello mine;
    nics_.describe(peer.told, mine);
    rails.ours.assign(mine.nics.begin(), mine.nics.begin() + mine.nic_count);
    rails.our_ways = ways_to(peer);
    if (peer.nics_due) rails.our_ways.mine = 0;
  }
  return rails.our_ways;
}

std::size_t RailManager::write_reports(Peer& peer, std::byte* out, std::size_t room) {
  Rails& rails = *peer.rails;
  std::size_t used = 0;
  if (rails.ways_due) {
    if (room < wire::kMaxWaysBytes) return 0;
    used += wire::put_ways(out, settle_ways(peer));
    rails.ways_due = false;
  }
  bool all = true;
  peer.for_each_rail([&](Rail& rail) {
    RailUpkeep& upkeep = upkeep_of(rail);
    if (!upkeep.report_due) return;
    if (room - used < wire::kRailBytes) {
      all = false;
      return;
    }
    const bool silent = upkeep.health.reason() == RailReason::kSilent;
    const auto said = upkeep.drained_here      ? wire::RailSaid::kDrained
                      : upkeep.kept_out_here   ? wire::RailSaid::kKeptOut
                      : upkeep.health.usable() ? wire::RailSaid::kUsed
                      : silent                 ? wire::RailSaid::kSilent
                                               : wire::RailSaid::kLeft;
    used += wire::put_rail(out + used, {rail.number, said, upkeep.told});
    upkeep.report_due = false;
  });
  rails.reports_due = !all;
  return used;
}

void RailManager::list_entries(const Peer& peer, std::span<const wire::NicInfo> mine,
                               Pairing& out) {
  const auto& theirs = peer.rails->theirs;
  std::transform(mine.begin(), mine.end(), std::back_inserter(out.here), entry_of);
  std::transform(theirs.begin(), theirs.end(), std::back_inserter(out.there), entry_of);
}

// Computes the pairing. Both ends have the same input, and compute the same. Rail 0 is what the
// left engine takes for it: if two calls crossed and each was answered, the ends may mean other
// pairs by it.
RailManager::Pairing RailManager::pairing_with(const Peer& peer,
                                               std::span<const wire::NicInfo> mine,
                                               const wire::Ways& ours) const {
  const Rails& rails = *peer.rails;
  Pairing out;
  list_entries(peer, mine, out);
  out.ways = ways_of(ours).worse_of(ways_of(rails.their_ways).transposed());
  peer.for_each_rail([&](const Rail& rail) {  // rails of NICs that came later
    const auto reach = static_cast<nic::Reach>(ours.reach[rail.module][rail.there]);
    if (rail.number != 0) out.ways.set(rail.module, rail.there, reach);
  });
  const bool we_are_left = epoch_ <= peer.epoch;
  out.home = we_are_left ? std::pair(ours.home, ours.home_there)
                         : std::pair(rails.their_ways.home_there, rails.their_ways.home);
  out.pairs = we_are_left ? failover::pair(out.here, out.there, out.ways)
                          : swapped(failover::pair(out.there, out.here, out.ways.transposed()));
  put_home(out.pairs, out.here, out.there, out.home);
  return out;
}

void RailManager::pair_none(Peer& peer) {
  peer.rails->paired = true;
  peer.rails->ways_due = false;
  peer.rails->ours = {};
  peer.nics_due = true;
}

// If the ends mean other NICs (one came between two calls), both see it and pair none. They find
// out what there is to pair by telling their NICs again.
void RailManager::pair(Peer& peer, const wire::Ways& theirs) {
  Rails& rails = *peer.rails;
  const wire::Ways& ours = settle_ways(peer);
  const bool fits =
      theirs.mine == rails.theirs.size() && theirs.theirs == peer.told && ours.mine == peer.told;
  rails.paired = true;
  rails.their_ways = theirs;
  if (theirs.home_there < peer.told) {
    rails.upkeep[0]->here = theirs.home_there;
    poller_.attend(theirs.home_there);
  }
  if (fits) {
    make_pairs(peer);
  } else {
    peer.nics_due = true;
  }
  rails.ours = {};
  settle_sizes(peer);
}

void RailManager::make_pairs(Peer& peer) {
  Rails& rails = *peer.rails;
  const Pairing found = pairing_with(peer, rails.ours, rails.our_ways);
  rails.spare_home = !found.pairs.empty();
  std::size_t number = 1;
  for (const failover::Pair& pair : found.pairs) {
    if (std::pair(pair.left, pair.right) == found.home) {
      rails.spare_home = false;
    } else if (number < wire::kMaxRails) {
      make_rail(peer, number++, pair.left, pair.right);
    }
  }
}

void RailManager::follow(Peer& peer, const wire::NicList& list) {
  if (epoch_ <= peer.epoch) return;
  for (std::size_t i = 0; i < list.rail_count; ++i) {
    const wire::RailPlace& place = list.rails[i];
    if (place.theirs >= peer.told || peer.rail(place.rail) != nullptr) continue;
    make_rail(peer, place.rail, place.theirs, place.mine);
  }
}

bool RailManager::plan(Peer& peer) {
  if (epoch_ > peer.epoch) return false;
  const auto& theirs = peer.rails->theirs;
  Pairing unused;
  wire::Hello mine;
  nics_.describe(peer.told, mine);
  list_entries(peer, {mine.nics.data(), mine.nic_count}, unused);
  std::uint32_t used_here = 0;
  std::uint32_t used_there = 0;
  peer.for_each_rail([&](const Rail& rail) {
    used_here |= addresses_of_nic(unused.here, rail.module);
    used_there |= addresses_of_nic(unused.there, rail.there);
  });
  for (std::size_t i = 0; i < peer.told; ++i) {
    const nic::Port& port = nics_.channel(i, ChannelKind::kCommand).port();
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      const bool both_free = (used_here >> i & 1) == 0 && (used_there >> j & 1) == 0;
      const bool alike = theirs[j].stream == nics_[i].device().stream;
      if (!both_free || !alike) continue;
      const nic::Reach reach = port.reach(theirs[j].command);
      // What the other end's WAYS say of it counts, too.
      const wire::Ways& said = peer.rails->their_ways;
      const bool known = j < said.mine && i < said.theirs;
      unused.ways.set(i, j,
                      known ? std::min(reach, static_cast<nic::Reach>(said.reach[j][i])) : reach);
    }
  }
  bool any = false;
  for (const failover::Pair& pair : failover::pair(unused.here, unused.there, unused.ways)) {
    std::size_t number = 1;
    while (number < wire::kMaxRails && peer.rail(number) != nullptr) ++number;
    if (number == wire::kMaxRails) break;
    make_rail(peer, number, pair.left, pair.right);
    any = true;
  }
  return any;
}

std::string RailManager::explain(PeerId id) const {
  const Peer* peer = peers_.find(id);
  if (peer == nullptr || peer->rails == nullptr || !peer->rails->paired) return {};
  wire::Hello mine;
  nics_.describe(peer->told, mine);
  const Pairing found = pairing_with(*peer, {mine.nics.data(), mine.nic_count}, ways_to(*peer));
  return failover::explain(found.here, found.there, found.ways, found.pairs);
}

void RailManager::make_rail(Peer& peer, std::size_t number, std::uint8_t module,
                            std::uint8_t there) {
  Rails& rails = *peer.rails;
  const wire::NicInfo& nic = rails.theirs[there];
  const auto index = static_cast<std::uint8_t>(number);
  PULLMAN_CHECK(rails.more[number] == nullptr);  // its packet numbers would begin again
  rails.more[number] = std::make_unique<Rail>(
      peer,
      RailName{.slot = peer.id.index, .number = index, .module = module, .nic = &nics_[module]},
      LinkSetup{links_.options, links_.shared, peer.home.link.window().first()});
  auto upkeep = std::make_unique<RailUpkeep>();
  upkeep->timer.name(TimerPurpose::kRailUpkeep, peer.id.index, index);
  upkeep->stream = nic.stream;
  upkeep->relayed = nics_[module].device().relayed;
  upkeep->here = module;
  upkeep->news.peer = peer.id;
  upkeep->news.number = index;
  rails.upkeep[number] = std::move(upkeep);
  Rail& rail = *rails.more[number];
  rail.there = there;
  rail.remote = nic.command;
  rail.link.handle_hello(peer.first_number_there, peer.first_credit);
  rail.command_bytes = static_cast<std::uint16_t>(
      std::min<std::size_t>(command(rail).packet_bytes(), nic.command_packet_bytes));
  auto& path = rail.link.path();
  path.start(std::min<std::size_t>(data(rail).packet_bytes(), nic.data_packet_bytes));
  rail.packet_bytes = static_cast<std::uint16_t>(path.bytes());
  poller_.attend(module);
  resolver_.resolve_both(rail);
}

void RailManager::handle_resolution(Instant now, Rail& rail, bool resolved) {
  if (resolved) return handle_resolved(now, rail);
  RailUpkeep& upkeep = upkeep_of(rail);
  upkeep.health.handle_unresolved(now);
  alarms_.arm_upkeep(now, rail);
}

// Both destinations are known: from now on the rail is probed.
void RailManager::handle_resolved(Instant now, Rail& rail) {
  if (!rail.resolved()) return;
  RailUpkeep& upkeep = upkeep_of(rail);
  upkeep.health.begin(now);
  if ((nics_.links_down() & nics_of(rail)) != 0) upkeep.health.leave(now, RailReason::kLinkDown);
  if ((nics_.drained() & nics_of(rail)) != 0) set_drained(now, rail, true);
  alarms_.arm_upkeep(now, rail);
  check_.check_new_rail(now, rail.peer);
  // This may be the only rail that has a destination.
  if (has_work(rail.peer) || rail.peer.phase == Phase::kClosing) ready_.mark(rail.peer);
}

void RailManager::handle_report(Peer& peer, const wire::Frame& frame) {
  const auto report = wire::read_rail(frame);
  Rail* rail = report && peer.rails != nullptr ? peer.rail(report->rail) : nullptr;
  if (rail == nullptr) return;
  const Instant now = clock_.polled_until();  // of this turn
  RailUpkeep& upkeep = upkeep_of(*rail);
  if (static_cast<std::int16_t>(report->count - upkeep.heard) <= 0) return;
  upkeep.heard = report->count;
  upkeep.drained_there = report->said == wire::RailSaid::kDrained;
  upkeep.kept_out_there = report->said == wire::RailSaid::kKeptOut;
  const bool drained = upkeep.health.state() == RailState::kDrained;
  switch (report->said) {
    case wire::RailSaid::kLeft:
    case wire::RailSaid::kSilent:
      if (usable(*rail)) {
        const bool silent = report->said == wire::RailSaid::kSilent;
        leave(now, *rail, silent ? RailReason::kSilentThere : RailReason::kTold);
      }
      if (drained && !upkeep.stays_out()) allow(now, *rail);
      break;
    case wire::RailSaid::kDrained:
      leave(now, *rail, RailReason::kOperator);
      break;
    case wire::RailSaid::kKeptOut:
      leave(now, *rail, RailReason::kTold);
      upkeep.kept_out_there = any_usable(peer);
      if (upkeep.kept_out_there && !drained) upkeep.health.keep_out(now);
      alarms_.arm_upkeep(now, *rail);
      break;
    case wire::RailSaid::kUsed:
      if (drained && !upkeep.stays_out()) {
        allow(now, *rail);
      } else if (rail->resolved()) {
        upkeep.health.ask_at_once(now);
        alarms_.arm_upkeep(now, *rail);
      }
      break;
  }
}

}  // namespace pullman::engine
