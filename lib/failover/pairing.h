// Which NIC of one end works with which NIC of the other: the rails of two peers.
//
// Pure: what the ends told each other goes in, and both ends compute the same. They agree on who is
// left (the one with the lower epoch) and hand in the same lists in the same order; nothing else
// counts, least of all what only one of them knows.
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

#include "nic/port.h"

namespace pullman::failover {

// Entries of one end; what is beyond is not looked at.
inline constexpr std::size_t kMaxEntries = 8;

// One address of one NIC, as an end tells the other. A NIC may have several: entries with the same
// `nic`.
struct NicEntry {
  nic::Address address;  // for explain()
  std::uint8_t nic = 0;  // which of this end's NICs
  std::uint32_t mbps = 0;
  std::uint32_t packet_bytes = 0;
  std::uint8_t distance = 0;  // from the process' processor, as nic::Device
  bool stream = false;        // of last resort; paired with its like only
};

// How each entry of one end reaches each of another.
class Ways {
 public:
  explicit Ways(nic::Reach all = nic::Reach::kNone) {
    for (auto& row : reach_) row.fill(all);
  }

  nic::Reach at(std::size_t from, std::size_t to) const { return reach_[from][to]; }
  void set(std::size_t from, std::size_t to, nic::Reach reach) { reach_[from][to] = reach; }

  // The same as the other end would write it.
  Ways transposed() const;

  // Of each way what the more doubtful of two says: a way that one end does not see is none.
  // `other` is written from the same end.
  Ways worse_of(const Ways& other) const;

  bool operator==(const Ways&) const = default;

 private:
  std::array<std::array<nic::Reach, kMaxEntries>, kMaxEntries> reach_;
};

// What makes one pair better than another: the first difference decides. Never says whether there
// is a way: where there is none, there is no Worth. Worths of several pairs add up.
struct Worth {
  std::uint64_t pairs = 0;         // 1; a NIC that is used beats all else
  std::uint64_t direct = 0;        // 1 if without a gateway
  std::uint64_t mbps = 0;          // of the slower; unknown is slow
  std::uint64_t packet_bytes = 0;  // of the lesser
  std::uint64_t nearness = 0;      // the less distance of both together, the more

  auto operator<=>(const Worth&) const = default;
  Worth operator+(const Worth& other) const;
};

struct Pair {
  std::uint8_t left = 0;  // entries
  std::uint8_t right = 0;
  nic::Reach reach = nic::Reach::kRouted;  // never kNone
  Worth worth;
  bool operator==(const Pair&) const = default;
};

// Pairs each NIC with one NIC at most, by the best of their addresses, such that the worths of all
// pairs together are greatest. The best pair comes first; streams, which are paired for themselves,
// come after all others. Of equal choices the one with lower entries is taken.
std::vector<Pair> pair(std::span<const NicEntry> left, std::span<const NicEntry> right,
                       const Ways& left_to_right);

// For people: a line for each pair, and a line for each entry without a partner that says why.
std::string explain(std::span<const NicEntry> left, std::span<const NicEntry> right,
                    const Ways& left_to_right, std::span<const Pair> pairs);

}  // namespace pullman::failover
