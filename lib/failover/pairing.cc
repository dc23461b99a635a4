#include "failover/pairing.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <optional>

namespace pullman::failover {
namespace {

using nic::Reach;
using Entries = std::span<const NicEntry>;

constexpr std::uint64_t kFarthest = 2 * std::numeric_limits<std::uint8_t>::max();

Entries bounded(Entries entries) {
  return entries.first(std::min(entries.size(), kMaxEntries));
}

// Returns the NICs of one kind among the entries, in the order of their first entries.
std::vector<std::uint8_t> nics_in(Entries entries, bool stream) {
  std::vector<std::uint8_t> out;
  for (const NicEntry& entry : entries) {
    if (entry.stream != stream) continue;
    if (std::find(out.begin(), out.end(), entry.nic) == out.end()) out.push_back(entry.nic);
  }
  return out;
}

Worth worth_of(const NicEntry& left, const NicEntry& right, Reach reach) {
  const auto together = static_cast<std::uint64_t>(left.distance) + right.distance;
  return {.pairs = 1,
          .direct = reach == Reach::kDirect,
          .mbps = std::min(left.mbps, right.mbps),
          .packet_bytes = std::min(left.packet_bytes, right.packet_bytes),
          .nearness = kFarthest - together};
}

// The possible pair of two NICs, by the best of their addresses; nothing if there is no way.
using Possible = std::optional<Pair>;

// Finds the best matching of datagram NICs, or of streams.
class Matching {
 public:
  Matching(Entries left, Entries right, const Ways& ways, bool stream)
      : left_nics_(nics_in(left, stream)), right_nics_(nics_in(right, stream)) {
    for (std::size_t l = 0; l < left.size(); ++l) {
      for (std::size_t r = 0; r < right.size(); ++r) {
        if (left[l].stream != stream || right[r].stream != stream) continue;
        consider(left, right, l, r, ways.at(l, r));
      }
    }
  }

  std::vector<Pair> best() {
    solve();
    std::vector<Pair> out;
    std::uint32_t used = 0;
    for (std::size_t l = 0; l < left_nics_.size(); ++l) {
      const std::size_t r = choice_[l][used];
      if (r == kNobody) continue;
      out.push_back(*possible_[l][r]);
      used |= 1u << r;
    }
    return out;
  }

 private:
  static constexpr std::uint8_t kNobody = kMaxEntries;
  static constexpr std::size_t kSets = std::size_t{1} << kMaxEntries;

  static std::size_t place(const std::vector<std::uint8_t>& nics, std::uint8_t nic) {
    return static_cast<std::size_t>(std::find(nics.begin(), nics.end(), nic) - nics.begin());
  }

  void consider(Entries left, Entries right, std::size_t l, std::size_t r, Reach reach) {
    if (reach == Reach::kNone) return;
    Possible& known = possible_[place(left_nics_, left[l].nic)][place(right_nics_, right[r].nic)];
    const Worth worth = worth_of(left[l], right[r], reach);
    if (known && known->worth >= worth) return;
    known = {.left = static_cast<std::uint8_t>(l),
             .right = static_cast<std::uint8_t>(r),
             .reach = reach,
             .worth = worth};
  }

  // Dynamic programming over the left NICs, from the last to the first, and over the sets of right
  // NICs that earlier left NICs may have taken: finds the greatest worth that this NIC and those
  // after it can have.
  void solve() {
    std::vector<Worth> after(kSets);  // the greatest worth of the NICs after the current one
    std::vector<Worth> now(kSets);
    const std::uint32_t sets = 1u << right_nics_.size();
    for (std::size_t l = left_nics_.size(); l-- > 0; after.swap(now)) {
      for (std::uint32_t used = 0; used < sets; ++used) now[used] = choose(l, used, after);
    }
  }

  // Of equal choices takes the lowest partner, and any partner rather than none.
  Worth choose(std::size_t l, std::uint32_t used, const std::vector<Worth>& after) {
    Worth most = after[used];
    std::uint8_t& choice = choice_[l][used] = kNobody;
    for (std::uint8_t r = 0; r < right_nics_.size(); ++r) {
      if ((used >> r & 1u) != 0 || !possible_[l][r]) continue;
      const Worth worth = possible_[l][r]->worth + after[used | 1u << r];
      if (worth < most || (worth == most && choice != kNobody)) continue;
      most = worth;
      choice = r;
    }
    return most;
  }

  std::vector<std::uint8_t> left_nics_;
  std::vector<std::uint8_t> right_nics_;
  std::array<std::array<Possible, kMaxEntries>, kMaxEntries> possible_;
  std::array<std::array<std::uint8_t, kSets>, kMaxEntries> choice_;
};

void append_matching(Entries left, Entries right, const Ways& ways, bool stream,
                     std::vector<Pair>& out) {
  auto pairs = Matching(left, right, ways, stream).best();
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.worth > b.worth; });
  out.insert(out.end(), pairs.begin(), pairs.end());
}

std::string speed_of(std::uint64_t mbps) {
  if (mbps == 0) return "unknown speed";
  if (mbps % 1000 == 0) return fmt::format("{} Gb/s", mbps / 1000);
  return fmt::format("{} Mb/s", mbps);
}

// An address that both ends claim is not believed of the peer, and has been cleared (kind 0).
std::string name_of(const NicEntry& entry) {
  if (entry.address.kind == 0) return "a NIC whose address this host has, too,";
  return fmt::format("{}{}", nic::host_string(entry.address), entry.stream ? " (stream)" : "");
}

std::string line_of(const NicEntry& left, const NicEntry& right, const Pair& pair) {
  return fmt::format("{} - {}: {}, {}, packets of {}, distance {}\n", name_of(left), name_of(right),
                     pair.reach == Reach::kDirect ? "direct" : "routed", speed_of(pair.worth.mbps),
                     pair.worth.packet_bytes, kFarthest - pair.worth.nearness);
}

// The result as seen from one end.
struct End {
  Entries own;
  Entries others;
  Ways ways;                           // from own to others
  std::vector<std::uint8_t> own_used;  // entries that have a partner
};

// Returns the entry of the same NIC among `used`, if there is one.
std::optional<std::uint8_t> used_of_nic(Entries entries, const std::vector<std::uint8_t>& used,
                                        const NicEntry& entry) {
  for (const std::uint8_t i : used) {
    if (entries[i].nic == entry.nic && entries[i].stream == entry.stream) return i;
  }
  return std::nullopt;
}

std::string why_alone(const End& end, std::size_t entry) {
  const NicEntry& own = end.own[entry];
  if (const auto used = used_of_nic(end.own, end.own_used, own)) {
    return fmt::format("its NIC is paired through {}", name_of(end.own[*used]));
  }
  bool any = false;  // whether the other end has a NIC of this kind
  for (std::size_t i = 0; i < end.others.size(); ++i) {
    if (end.others[i].stream != own.stream) continue;
    any = true;
    if (end.ways.at(entry, i) != Reach::kNone) {
      return "what it reaches is paired with others";
    }
  }
  if (any) return "there is no way from it to any of the other end's";
  return own.stream ? "the other end has no stream" : "the other end has no datagram NIC";
}

std::string format_unpaired(const End& end) {
  std::string out;
  for (std::size_t i = 0; i < end.own.size(); ++i) {
    if (std::find(end.own_used.begin(), end.own_used.end(), i) != end.own_used.end()) continue;
    out += fmt::format("{} has no partner: {}\n", name_of(end.own[i]), why_alone(end, i));
  }
  return out;
}

}  // namespace

Worth Worth::operator+(const Worth& other) const {
  return {.pairs = pairs + other.pairs,
          .direct = direct + other.direct,
          .mbps = mbps + other.mbps,
          .packet_bytes = packet_bytes + other.packet_bytes,
          .nearness = nearness + other.nearness};
}

Ways Ways::transposed() const {
  Ways out;
  for (std::size_t i = 0; i < kMaxEntries; ++i) {
    for (std::size_t j = 0; j < kMaxEntries; ++j) out.set(j, i, at(i, j));
  }
  return out;
}

Ways Ways::worse_of(const Ways& other) const {
  Ways out;
  for (std::size_t i = 0; i < kMaxEntries; ++i) {
    for (std::size_t j = 0; j < kMaxEntries; ++j) {
      out.set(i, j, std::min(at(i, j), other.at(i, j)));
    }
  }
  return out;
}

std::vector<Pair> pair(std::span<const NicEntry> left, std::span<const NicEntry> right,
                       const Ways& left_to_right) {
  std::vector<Pair> out;
  append_matching(bounded(left), bounded(right), left_to_right, false, out);
  append_matching(bounded(left), bounded(right), left_to_right, true, out);
  return out;
}

std::string explain(std::span<const NicEntry> left, std::span<const NicEntry> right,
                    const Ways& left_to_right, std::span<const Pair> pairs) {
  End here{.own = bounded(left), .others = bounded(right), .ways = left_to_right, .own_used = {}};
  End there{
      .own = here.others, .others = here.own, .ways = left_to_right.transposed(), .own_used = {}};
  std::string out;
  for (const Pair& pair : pairs) {
    out += line_of(left[pair.left], right[pair.right], pair);
    here.own_used.push_back(pair.left);
    there.own_used.push_back(pair.right);
  }
  return out + format_unpaired(here) + format_unpaired(there);
}

}  // namespace pullman::failover
