#include "failover/pairing.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>

namespace pullman::failover {
namespace {

using nic::Reach;

NicEntry entry(std::uint8_t nic, std::uint32_t mbps = 1000, std::uint32_t packet_bytes = 1472,
               std::uint8_t distance = 0) {
  std::string why;
  return {.address = *nic::parse(fmt::format("10.0.{}.{}", nic, packet_bytes % 251), 1, why),
          .nic = nic,
          .mbps = mbps,
          .packet_bytes = packet_bytes,
          .distance = distance,
          .stream = false};
}

NicEntry stream(std::uint8_t nic) {
  NicEntry out = entry(nic);
  out.stream = true;
  return out;
}

// The indices that were paired, in order: {{left, right}, ...}.
using Picked = std::vector<std::pair<int, int>>;

Picked picked(const std::vector<Pair>& pairs) {
  Picked out;
  for (const Pair& pair : pairs) out.emplace_back(pair.left, pair.right);
  return out;
}

using Entries = std::vector<NicEntry>;

Picked paired(const Entries& left, const Entries& right, const Ways& ways) {
  return picked(pair(left, right, ways));
}

const Ways kAllDirect(Reach::kDirect);

Worth total(const std::vector<Pair>& pairs) {
  Worth out;
  for (const Pair& pair : pairs) out = out + pair.worth;
  return out;
}

// The best pairing found by trying all of them, with none of the code under test.
class Brute {
 public:
  Brute(const Entries& left, const Entries& right, const Ways& ways, bool stream)
      : left_(left), right_(right), ways_(ways), stream_(stream) {}

  Worth best() { return from(0, {}, {}); }

 private:
  using Nics = std::vector<std::uint8_t>;

  static bool has(const Nics& nics, std::uint8_t nic) {
    return std::find(nics.begin(), nics.end(), nic) != nics.end();
  }

  // Leaves each left entry out in turn, or pairs it with any right one whose NIC is free.
  Worth from(std::size_t l, const Nics& left_used, const Nics& right_used) {
    if (l == left_.size()) return {};
    Worth most = from(l + 1, left_used, right_used);
    if (left_[l].stream != stream_ || has(left_used, left_[l].nic)) return most;
    for (std::size_t r = 0; r < right_.size(); ++r) {
      if (right_[r].stream != stream_ || has(right_used, right_[r].nic)) continue;
      if (ways_.at(l, r) == Reach::kNone) continue;
      Nics more_left = left_used;
      Nics more_right = right_used;
      more_left.push_back(left_[l].nic);
      more_right.push_back(right_[r].nic);
      most = std::max(most, worth(l, r) + from(l + 1, more_left, more_right));
    }
    return most;
  }

  Worth worth(std::size_t l, std::size_t r) const {
    const NicEntry& a = left_[l];
    const NicEntry& b = right_[r];
    return {.pairs = 1,
            .direct = ways_.at(l, r) == Reach::kDirect ? 1u : 0u,
            .mbps = a.mbps < b.mbps ? a.mbps : b.mbps,
            .packet_bytes = a.packet_bytes < b.packet_bytes ? a.packet_bytes : b.packet_bytes,
            .nearness = 510u - a.distance - b.distance};
  }

  const Entries& left_;
  const Entries& right_;
  const Ways& ways_;
  bool stream_;
};

// Two ends at random, of few different values, so that there are many ties.
struct Case {
  Entries left;
  Entries right;
  Ways ways;

  Case(std::mt19937& random, std::size_t least, std::size_t most) {
    const auto below = [&](std::size_t n) { return random() % n; };
    const auto end = [&] {
      Entries out(least + below(most - least + 1));
      for (NicEntry& e : out) {
        e = entry(static_cast<std::uint8_t>(below(6)), 1000 * static_cast<std::uint32_t>(below(3)),
                  below(3) == 0 ? 9000 : 1472, static_cast<std::uint8_t>(10 * below(3)));
        e.stream = below(4) == 0;
      }
      return out;
    };
    left = end();
    right = end();
    for (std::size_t i = 0; i < kMaxEntries; ++i) {
      for (std::size_t j = 0; j < kMaxEntries; ++j) ways.set(i, j, Reach{std::uint8_t(below(3))});
    }
  }
};

void require_sound(const Case& given, const std::vector<Pair>& pairs) {
  bool streams = false;
  std::vector<std::pair<bool, int>> left_nics;
  std::vector<std::pair<bool, int>> right_nics;
  for (const Pair& pair : pairs) {
    const NicEntry& left = given.left.at(pair.left);
    const NicEntry& right = given.right.at(pair.right);
    REQUIRE(left.stream == right.stream);
    REQUIRE(left.stream >= streams);
    streams = left.stream;
    REQUIRE(pair.reach != Reach::kNone);
    REQUIRE(pair.reach == given.ways.at(pair.left, pair.right));
    const std::pair<bool, int> of_left(streams, left.nic);
    const std::pair<bool, int> of_right(streams, right.nic);
    REQUIRE(std::count(left_nics.begin(), left_nics.end(), of_left) == 0);
    REQUIRE(std::count(right_nics.begin(), right_nics.end(), of_right) == 0);
    left_nics.push_back(of_left);
    right_nics.push_back(of_right);
  }
}

TEST_CASE("equal NICs are paired in their order") {
  const Entries three{entry(0), entry(1), entry(2)};

  CHECK(paired(three, three, kAllDirect) == Picked{{0, 0}, {1, 1}, {2, 2}});
}

TEST_CASE("without entries at either end there are no pairs") {
  CHECK(paired({}, {}, kAllDirect).empty());
  CHECK(paired({entry(0)}, {}, kAllDirect).empty());
  CHECK(paired({}, {entry(0)}, kAllDirect).empty());
}

TEST_CASE("entries without a way between them are not paired, whatever their speed") {
  const Entries fast{entry(0, 400'000)};

  CHECK(paired(fast, fast, Ways(Reach::kNone)).empty());
}

TEST_CASE("a way of which only its existence is known makes a pair") {
  // Everything that is weighed is zero or worst: the least worth, but not "unreachable".
  const Entries unknown{entry(0, 0, 0, 255)};

  CHECK(paired(unknown, unknown, Ways(Reach::kRouted)) == Picked{{0, 0}});
}

TEST_CASE("a slow direct way beats a fast one through a gateway") {
  Ways ways(Reach::kRouted);
  ways.set(0, 0, Reach::kDirect);

  CHECK(paired({entry(0, 1000)}, {entry(0, 1000), entry(1, 100'000)}, ways) == Picked{{0, 0}});
  CHECK(paired({entry(0, 100'000)}, {entry(0, 10), entry(1, 100'000)}, ways) == Picked{{0, 0}});
}

TEST_CASE("two routed pairs beat one that is direct") {
  Ways ways;  // left 0 reaches both, left 1 only right 0
  ways.set(0, 0, Reach::kDirect);
  ways.set(0, 1, Reach::kRouted);
  ways.set(1, 0, Reach::kRouted);

  CHECK(paired({entry(0), entry(1)}, {entry(0), entry(1)}, ways) == Picked{{0, 1}, {1, 0}});
}

TEST_CASE("a pair is worth its slower end: fast NICs are paired with fast ones") {
  const Entries left{entry(0, 10'000), entry(1, 1000)};
  const Entries right{entry(0, 1000), entry(1, 10'000)};

  CHECK(paired(left, right, kAllDirect) == Picked{{0, 1}, {1, 0}});
}

TEST_CASE("of equal speeds the longer packets decide, then the distance") {
  CHECK(paired({entry(0)}, {entry(0), entry(1, 1000, 8972)}, kAllDirect) == Picked{{0, 0}});
  CHECK(paired({entry(0, 1000, 9000)}, {entry(0), entry(1, 1000, 8972)}, kAllDirect) ==
        Picked{{0, 1}});
  CHECK(paired({entry(0)}, {entry(0, 1000, 1472, 20), entry(1, 1000, 1472, 10)}, kAllDirect) ==
        Picked{{0, 1}});
}

TEST_CASE("with unequal numbers the best NICs of the larger side are used") {
  const Entries few{entry(0), entry(1)};
  const Entries many{entry(0, 10), entry(1), entry(2, 100), entry(3)};

  CHECK(paired(few, many, kAllDirect) == Picked{{0, 1}, {1, 3}});
  CHECK(paired(many, few, kAllDirect) == Picked{{1, 0}, {3, 1}});
}

TEST_CASE("the best pair comes first") {
  const Entries both{entry(0, 1000), entry(1, 25'000)};

  CHECK(paired(both, both, kAllDirect) == Picked{{1, 1}, {0, 0}});
}

TEST_CASE("a NIC with two addresses is one NIC, paired by the better address") {
  Entries left{entry(0), entry(0, 1000, 1452)};
  const Entries right{entry(7), entry(7, 1000, 1452), entry(8)};
  Ways ways;
  ways.set(0, 0, Reach::kRouted);
  ways.set(1, 1, Reach::kDirect);

  CHECK(paired(left, right, ways) == Picked{{1, 1}});

  left.push_back(entry(1));
  ways.set(2, 2, Reach::kDirect);
  CHECK(paired(left, right, ways) == Picked{{2, 2}, {1, 1}});  // 2 - 2 has the longer packets
}

TEST_CASE("streams are paired with streams, and come last") {
  const Entries left{stream(0), entry(0), entry(1)};
  const Entries right{entry(0), stream(0), stream(1)};

  CHECK(paired(left, right, kAllDirect) == Picked{{1, 0}, {0, 1}});
}

TEST_CASE("a stream beside a datagram rail on the same NIC is paired, too") {
  const Entries both{entry(0), stream(0)};

  CHECK(paired(both, both, kAllDirect) == Picked{{0, 0}, {1, 1}});
}

TEST_CASE("reachability decides, not masks: NICs of two networks with one prefix length are two") {
  // eth0 and eth1 of both ends, in 10.0.1.0/24 and 10.0.2.0/24, cabled crosswise in name only.
  Ways ways;
  ways.set(0, 1, Reach::kDirect);
  ways.set(1, 0, Reach::kDirect);

  CHECK(paired({entry(1), entry(2)}, {entry(2), entry(1)}, ways) == Picked{{0, 1}, {1, 0}});
}

TEST_CASE("entries beyond the maximum are ignored") {
  const Entries many(kMaxEntries + 3, entry(0));
  Entries different;
  for (std::uint8_t i = 0; i < kMaxEntries + 3; ++i) different.push_back(entry(i, 1000u + i));

  CHECK(paired(many, many, kAllDirect) == Picked{{0, 0}});
  CHECK(paired(different, different, kAllDirect).size() == kMaxEntries);
  CHECK(!explain(different, different, kAllDirect, pair(different, different, kAllDirect)).empty());
}

TEST_CASE("of what both ends say of a way the worse holds") {
  Ways here(Reach::kDirect);
  Ways there(Reach::kDirect);  // written from the other end
  here.set(0, 1, Reach::kRouted);
  there.set(1, 0, Reach::kNone);
  there.set(2, 5, Reach::kRouted);

  const Ways both = here.worse_of(there.transposed());

  CHECK(both.at(0, 1) == Reach::kNone);
  CHECK(both.at(5, 2) == Reach::kRouted);
  CHECK(both.at(2, 5) == Reach::kDirect);
  CHECK(both == there.worse_of(here.transposed()).transposed());
}

TEST_CASE("no pairing is better than the one chosen") {
  std::mt19937 random(23);
  for (int i = 0; i < 5000; ++i) {
    const Case given(random, 0, 5);
    const auto pairs = pair(given.left, given.right, given.ways);

    require_sound(given, pairs);
    const Worth best = Brute(given.left, given.right, given.ways, false).best() +
                       Brute(given.left, given.right, given.ways, true).best();
    REQUIRE(total(pairs) == best);
  }
}

TEST_CASE("pairings of the greatest size are sound, and worth as much from either side") {
  std::mt19937 random(8);
  for (int i = 0; i < 2000; ++i) {
    const Case given(random, kMaxEntries, kMaxEntries);
    const auto pairs = pair(given.left, given.right, given.ways);
    const auto mirrored = pair(given.right, given.left, given.ways.transposed());

    require_sound(given, pairs);
    REQUIRE(total(pairs) == total(mirrored));
    REQUIRE(pairs.size() == mirrored.size());
  }
}

// What an end has and what the peer announced, from which it computes the pairing.
struct End {
  std::uint64_t epoch;
  Entries own;
  Entries told;
  Ways own_ways;   // from own to told, as this end sees them
  Ways told_ways;  // as the other end sees them, written by it

  Picked pairs() const {  // {own, told}
    const Ways ways = own_ways.worse_of(told_ways.transposed());
    if (epoch % 2 == 0) return picked(pair(own, told, ways));
    Picked out = picked(pair(told, own, ways.transposed()));
    for (auto& [a, b] : out) std::swap(a, b);
    return out;
  }
};

TEST_CASE("both ends compute the same pairs in the same order, however many are equal") {
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const Case given(random, 0, kMaxEntries);
    const Ways seen_there = Case(random, 0, 1).ways;
    const End lower{0, given.left, given.right, given.ways, seen_there};
    const End higher{1, given.right, given.left, seen_there, given.ways};

    Picked there = higher.pairs();
    for (auto& [a, b] : there) std::swap(a, b);
    REQUIRE(lower.pairs() == there);
  }
}

TEST_CASE("an explanation names the pairs, and why the other entries are unpaired") {
  const Entries left{entry(1, 10'000), entry(1, 10'000, 1452), entry(2, 1500), entry(3), stream(1)};
  const Entries right{entry(1, 10'000), entry(2, 1000, 1472, 12)};
  Ways ways;
  ways.set(0, 0, Reach::kDirect);
  ways.set(1, 0, Reach::kDirect);
  ways.set(2, 0, Reach::kRouted);
  ways.set(2, 1, Reach::kRouted);

  const std::string text = explain(left, right, ways, pair(left, right, ways));

  CHECK(text ==
        "10.0.1.217 - 10.0.1.217: direct, 10 Gb/s, packets of 1472, distance 0\n"
        "10.0.2.217 - 10.0.2.217: routed, 1 Gb/s, packets of 1472, distance 12\n"
        "10.0.1.197 has no partner: its NIC is paired through 10.0.1.217\n"
        "10.0.3.217 has no partner: there is no way from it to any of the other end's\n"
        "10.0.1.217 (stream) has no partner: the other end has no stream\n");
}

TEST_CASE("a NIC too many is explained by the pairs that use what it reaches") {
  const Entries left{entry(1)};
  const Entries right{entry(1), entry(2)};

  const std::string text = explain(left, right, kAllDirect, pair(left, right, kAllDirect));

  CHECK(text ==
        "10.0.1.217 - 10.0.1.217: direct, 1 Gb/s, packets of 1472, distance 0\n"
        "10.0.2.217 has no partner: what it reaches is paired with others\n");
}

}  // namespace
}  // namespace pullman::failover
