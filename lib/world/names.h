// What processes of a world are called in sentences.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace pullman::world {

inline std::string name_of(unsigned rank) {
  return fmt::format("rank {}", rank);
}

// "rank 3", "ranks 3 and 7", "ranks 3, 7, 8 and 12 more".
inline std::string names_of(const std::vector<unsigned>& ranks) {
  constexpr std::size_t kNamed = 8;
  if (ranks.size() == 1) return name_of(ranks.front());
  std::string names = "ranks ";
  const std::size_t named = ranks.size() <= kNamed ? ranks.size() - 1 : kNamed;
  for (std::size_t i = 0; i < named; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  return names + (ranks.size() <= kNamed ? fmt::format(" and {}", ranks.back())
                                         : fmt::format(" and {} more", ranks.size() - named));
}

}  // namespace pullman::world
