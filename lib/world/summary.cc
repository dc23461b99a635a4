#include "world/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "telemetry/snapshot.h"
#include "world/fields.h"
#include "world/question.h"

namespace pullman::world {
namespace {

constexpr std::uint8_t kSummaryVersion = 1;
constexpr std::size_t kAddressLetters = 64;
constexpr std::size_t kWordLetters = 40;
constexpr std::size_t kNicLetters = 32;
constexpr std::size_t kHostLetters = 64;
constexpr std::size_t kWarningLetters = 200;

// With every text as long as it may be, and its length before it.
constexpr std::size_t kWaitBytes = 4 + 1 + kAddressLetters + 1 + kWordLetters + 8 + 8;
constexpr std::size_t kRailBytes =
    4 + 1 + kNicLetters + 1 + kAddressLetters + 2 * (1 + kWordLetters) + 5 * 8;
constexpr std::size_t kFixedBytes = 1 + 4 + 4 + 8 + 1 + kHostLetters + 1 + 8 + 8 +
                                    (1 + kWordLetters + 4 + 8) + 8 + 8 + 2 + 8 + 1 +
                                    kWarningLetters;
static_assert(kFixedBytes + kMaxWaits * kWaitBytes + kMaxRails * kRailBytes <= kMaxSummaryBytes);

// What is there of the optional fields, and a flag.
enum Has : std::uint8_t { kThread = 1, kInCall = 2, kProgram = 4, kCollective = 8, kAll = 15 };

void write(FieldWriter& out, Age age) {
  out.long_number(static_cast<std::uint64_t>(std::max(age, Age(0)).count()));
}

// Ages of more than 292 years are an error.
Age read_age(FieldReader& in) {
  const std::uint64_t count = in.long_number();
  if (count > static_cast<std::uint64_t>(Age::max().count())) in.fail();
  return in.failed() ? Age(0) : Age(static_cast<std::int64_t>(count));
}

void write(FieldWriter& out, const WaitedFor& wait) {
  out.number(wait.rank);
  out.text(wait.address, kAddressLetters);
  out.text(wait.what, kWordLetters);
  write(out, wait.since);
  write(out, wait.heard);
}

WaitedFor read_wait(FieldReader& in) {
  WaitedFor wait;
  wait.rank = in.number();
  wait.address = in.text(kAddressLetters);
  wait.what = in.text(kWordLetters);
  wait.since = read_age(in);
  wait.heard = read_age(in);
  return wait;
}

void write(FieldWriter& out, const RailSummary& rail) {
  out.number(rail.rank);
  out.text(rail.nic, kNicLetters);
  out.text(rail.remote, kAddressLetters);
  out.text(rail.state, kWordLetters);
  out.text(rail.reason, kWordLetters);
  write(out, rail.since);
  write(out, rail.rtt);
  out.long_number(rail.lost);
  out.long_number(rail.timeouts);
  out.long_number(rail.in_flight);
}

RailSummary read_rail(FieldReader& in) {
  RailSummary rail;
  rail.rank = in.number();
  rail.nic = in.text(kNicLetters);
  rail.remote = in.text(kAddressLetters);
  rail.state = in.text(kWordLetters);
  rail.reason = in.text(kWordLetters);
  rail.since = read_age(in);
  rail.rtt = read_age(in);
  rail.lost = in.long_number();
  rail.timeouts = in.long_number();
  rail.in_flight = in.long_number();
  return rail;
}

// Returns whether all ranks are ones of a world that may be asked.
bool has_valid_ranks(const Summary& summary) {
  const std::uint32_t size = summary.size;
  const auto is_valid = [size](std::uint32_t rank) { return rank == kNoRank || rank < size; };
  return size <= kMaxAskedSize && summary.rank < size &&
         (!summary.collective || is_valid(summary.collective->rank)) &&
         std::all_of(summary.waits.begin(), summary.waits.end(),
                     [&](const WaitedFor& wait) { return is_valid(wait.rank); }) &&
         std::all_of(summary.rails.begin(), summary.rails.end(),
                     [&](const RailSummary& rail) { return is_valid(rail.rank); });
}

Age age(std::uint64_t then, Instant now) {
  const std::uint64_t at = telemetry::clock_count(now);
  return then == 0 || then > at ? Age(0) : Age(static_cast<std::int64_t>(at - then));
}

bool is_gone(const WaitedFor& wait) {
  return wait.what.starts_with(kGone);
}

using PeerKey = std::pair<std::uint64_t, std::uint64_t>;

// Those that have ended come last: there is no end to them where ranks leave, and what is waited
// for must not be cut for them.
void add_waits(const telemetry::Rows& rows, Instant now, const RankOf& rank_of, Summary& out,
               std::set<PeerKey>& waited_for) {
  for (const telemetry::PeerRow& peer : rows.peers) {
    const std::string_view reason = peer.waits_for.view();
    const bool has_ended = peer.phase.view() == "gone";
    if (reason.empty() && peer.receives_posted == 0 && !has_ended) continue;
    const WaitedFor wait{.rank = rank_of(peer.peer, peer.generation),
                         .address = std::string(peer.address.view()),
                         .heard = age(peer.heard_at, now)};
    // It has another connection, or was no process.
    if (has_ended && wait.rank == kNoRank) continue;
    ++out.peers_waited_for;
    if (has_ended) {
      out.waits.push_back(wait);
      out.waits.back().what = fmt::format("{}{}", kGone, peer.why.view());
      out.waits.back().since = wait.heard;
      continue;
    }
    if (!reason.empty()) {
      out.waits.push_back(wait);
      out.waits.back().what = reason;
      out.waits.back().since = age(peer.waits_since, now);
    }
    if (peer.receives_posted != 0) {
      out.waits.push_back(wait);
      out.waits.back().what = kWaitsForMessage;
      out.waits.back().since = age(peer.receives_since, now);
    }
  }
  std::stable_sort(out.waits.begin(), out.waits.end(), [](const WaitedFor& a, const WaitedFor& b) {
    return std::pair(is_gone(a), b.since) < std::pair(is_gone(b), a.since);
  });
  if (out.waits.size() > kMaxWaits) out.waits.resize(kMaxWaits);
  for (const telemetry::PeerRow& peer : rows.peers) {
    const bool named = std::any_of(out.waits.begin(), out.waits.end(), [&](const WaitedFor& wait) {
      return wait.address == peer.address.view() && wait.what != kWaitsForMessage && !is_gone(wait);
    });
    if (named) waited_for.emplace(peer.peer, peer.generation);
  }
}

// Those that are not up come first. A peer with a single rail has none that could be left.
void add_rails(const telemetry::Rows& rows, Instant now, const RankOf& rank_of, Summary& out,
               const std::set<PeerKey>& waited_for) {
  for (const bool up : {false, true}) {
    for (const telemetry::RailRow& rail : rows.rails) {
      const bool is_up = rail.state.view() == "up";
      const bool is_named = waited_for.contains({rail.peer, rail.generation});
      if (is_up != up || (up && !is_named) || out.rails.size() == kMaxRails) continue;
      out.rails.push_back({.rank = rank_of(rail.peer, rail.generation),
                           .nic = std::string(rail.nic.view()),
                           .remote = std::string(rail.remote.view()),
                           .state = std::string(rail.state.view()),
                           .reason = std::string(rail.reason.view()),
                           .since = age(rail.since, now),
                           .rtt = Age(static_cast<std::int64_t>(rail.rtt)),
                           .lost = rail.lost,
                           .timeouts = rail.timeouts,
                           .in_flight = rail.in_flight});
    }
  }
}

void add_warnings(const telemetry::Rows& rows, Summary& out) {
  std::uint64_t last = 0;
  for (const telemetry::ErrorRow& error : rows.errors) {
    out.warnings += error.times;
    if (error.last < last) continue;
    last = error.last;
    out.warning = telemetry::printable(std::string(error.text.view()));
  }
}

}  // namespace

Bytes encode(const Summary& summary) {
  FieldWriter out;
  out.byte(kSummaryVersion);
  out.number(summary.rank);
  out.number(summary.size);
  out.long_number(summary.process);
  out.text(summary.host, kHostLetters);
  out.byte(static_cast<std::uint8_t>(
      (summary.has_thread ? kThread : 0) | (summary.in_call ? kInCall : 0) |
      (summary.program_ago ? kProgram : 0) | (summary.collective ? kCollective : 0)));
  if (summary.in_call) write(out, *summary.in_call);
  if (summary.program_ago) write(out, *summary.program_ago);
  if (summary.collective) {
    out.text(summary.collective->name, kWordLetters);
    out.number(summary.collective->rank);
    write(out, summary.collective->since);
  }
  out.long_number(summary.receives_posted);
  out.long_number(summary.peers_waited_for);
  const std::size_t waits = std::min(summary.waits.size(), kMaxWaits);
  out.byte(static_cast<std::uint8_t>(waits));
  for (std::size_t i = 0; i < waits; ++i) write(out, summary.waits[i]);
  const std::size_t rails = std::min(summary.rails.size(), kMaxRails);
  out.byte(static_cast<std::uint8_t>(rails));
  for (std::size_t i = 0; i < rails; ++i) write(out, summary.rails[i]);
  out.long_number(summary.warnings);
  out.text(summary.warning, kWarningLetters);
  return out.take();
}

std::optional<Summary> decode_summary(std::span<const std::byte> bytes) {
  FieldReader in(bytes);
  if (in.byte() != kSummaryVersion) return std::nullopt;
  Summary out;
  out.rank = in.number();
  out.size = in.number();
  out.process = in.long_number();
  out.host = in.text(kHostLetters);
  const std::uint8_t has = in.byte();
  out.has_thread = (has & kThread) != 0;
  if ((has & kInCall) != 0) out.in_call = read_age(in);
  if ((has & kProgram) != 0) out.program_ago = read_age(in);
  if ((has & kCollective) != 0) {
    CollectiveCall& call = out.collective.emplace();
    call.name = in.text(kWordLetters);
    call.rank = in.number();
    call.since = read_age(in);
  }
  out.receives_posted = in.long_number();
  out.peers_waited_for = in.long_number();
  const std::size_t waits = in.byte();
  if (waits > kMaxWaits) return std::nullopt;
  for (std::size_t i = 0; i < waits; ++i) out.waits.push_back(read_wait(in));
  const std::size_t rails = in.byte();
  if (rails > kMaxRails) return std::nullopt;
  for (std::size_t i = 0; i < rails; ++i) out.rails.push_back(read_rail(in));
  out.warnings = in.long_number();
  out.warning = in.text(kWarningLetters);
  if (!in.is_at_end() || has > kAll || !has_valid_ranks(out)) return std::nullopt;
  return out;
}

void describe(const telemetry::Rows& rows, const Context::Service::Activity& activity,
              const RankOf& rank_of, Summary& out) {
  const Instant now = activity.at;
  out.process = rows.context.process;
  out.has_thread = activity.has_thread;
  if (activity.call_begun) out.in_call = now - *activity.call_begun;
  if (activity.attended_at != Instant::min()) out.program_ago = now - activity.attended_at;
  out.receives_posted = rows.context.receives_posted;
  std::set<PeerKey> waited_for;
  add_waits(rows, now, rank_of, out, waited_for);
  add_rails(rows, now, rank_of, out, waited_for);
  add_warnings(rows, out);
}

}  // namespace pullman::world
