// Pairs the NICs of two peers: each pair is a rail.
//
// Pure: both ends compute the same pairs from what they told each other. They agree that the end
// with the lower epoch is `left`, and pass the same lists in the same order. The result depends on
// nothing else, least of all on what only one end knows.
//
// Knows neither connections nor health, and opens nothing.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "nic/port.h"

namespace pullman::failover {

// The largest number of entries of one end. Further ones are ignored.
inline constexpr std::size_t kMaxEntries = 8;

// One address of one NIC, as an end tells the other. A NIC with several addresses has several
// entries with the same `nic`.
struct NicEntry {
  nic::Address address;  // for explain()
  std::uint8_t nic = 0;  // which of this end's NICs
  std::uint32_t mbps = 0;
  std::uint32_t packet_bytes = 0;
  std::uint8_t distance = 0;  // from the process's processor, as in nic::Device
  bool stream = false;        // a last resort: paired only with one of the other end
};

// A matrix: how each entry of one end reaches each entry of the other.
class Ways {
 public:
  explicit Ways(nic::Reach all = nic::Reach::kNone) {
    for (auto& row : reach_) row.fill(all);
  }

  nic::Reach at(std::size_t from, std::size_t to) const { return reach_[from][to]; }
  void set(std::size_t from, std::size_t to, nic::Reach reach) {
    PULLMAN_DCHECK(from < kMaxEntries && to < kMaxEntries);
    reach_[from][to] = reach;
  }

  // Returns the same matrix as seen from the other end.
  Ways transposed() const;

  // Returns the lesser of both matrices, entry by entry: entries have a way to each other only if
  // both ends see one. `other` is seen from the same end.
  Ways worse_of(const Ways& other) const;

  bool operator==(const Ways&) const = default;

 private:
  std::array<std::array<nic::Reach, kMaxEntries>, kMaxEntries> reach_;
};

// The worth of a pair. Two are compared by their first difference. Only NICs with a way to each
// other have one. The worths of several pairs add up.
struct Worth {
  std::uint64_t pairs = 0;         // 1; so using one more NIC outweighs all else
  std::uint64_t direct = 0;        // 1 if there is no gateway between them
  std::uint64_t mbps = 0;          // of the slower NIC; unknown counts as 0
  std::uint64_t packet_bytes = 0;  // the smaller packet size of the two
  std::uint64_t nearness = 0;      // decreases with the sum of both distances

  auto operator<=>(const Worth&) const = default;
  Worth operator+(const Worth& other) const;
};

struct Pair {
  std::uint8_t left = 0;  // the index of the entry
  std::uint8_t right = 0;
  nic::Reach reach = nic::Reach::kRouted;  // never kNone
  Worth worth;
  bool operator==(const Pair&) const = default;
};

// Pairs each NIC with at most one NIC, by the best of their addresses, such that the sum of the
// worths is greatest. The best pair comes first. Streams are paired separately and come last. Of
// equal choices the one with lower entries is taken.
std::vector<Pair> pair(std::span<const NicEntry> left, std::span<const NicEntry> right,
                       const Ways& left_to_right);

// Returns, for people, a line for each pair, and a line for each entry without a partner that says
// why it has none.
std::string explain(std::span<const NicEntry> left, std::span<const NicEntry> right,
                    const Ways& left_to_right, std::span<const Pair> pairs);

}  // namespace pullman::failover
