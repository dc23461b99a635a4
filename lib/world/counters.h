// The counters of all processes of a world at its end, side by side: what one process sends of its
// own, and the page about all. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/rows.h"
#include "world/bytes.h"

namespace pullman::world {

// Which counters there are: those of a context, and its high-water marks. The same in all processes
// of one version.
const std::vector<std::string_view>& counter_names();

using Counters = std::vector<std::uint64_t>;
// By rank.
using AllCounters = std::map<unsigned, Counters>;

Counters counters_of(const telemetry::Rows& rows);

// A letter has those of several processes.
Bytes encode(const AllCounters& counters);
// Adds what a letter says to `out`. Returns false if it is none of this version; nothing is added
// then. Ranks are below `size`.
bool decode(std::span<const std::byte> letter, unsigned size, AllCounters& out);

struct Page {
  unsigned size = 1;
  std::chrono::nanoseconds duration{};
  AllCounters counters{};
};

// Returns the page for people: minimum, median and maximum of each counter, with the ranks that had
// them. Counters that are nothing everywhere are left out.
std::string to_table(const Page& page);
std::string to_json(const Page& page);

}  // namespace pullman::world
