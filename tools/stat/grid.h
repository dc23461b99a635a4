// One table of all contexts together, as the live view shows it: counters as rates, sorted and
// filtered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stat/source.h"

namespace stat_program {

struct GridCell {
  std::string text;
  double order = 0;  // of numbers
  bool is_number = false;
};

struct Grid {
  std::vector<std::string> names;  // of the columns; rates end in /s
  std::vector<std::vector<GridCell>> rows;
};

struct GridQuestion {
  std::string table;
  std::string filter;    // only rows with this text in a cell; empty: all
  std::size_t sort = 0;  // by this column
  bool descending = false;
};

// Returns the names of the tables there are, in their order.
std::vector<std::string> table_names(const std::vector<Shown>& all);

// `before` is what was read `seconds` ago: a row that was not there has no rates yet.
Grid make_grid(const std::vector<Shown>& all, const std::vector<Shown>& before, double seconds,
               const GridQuestion& question, std::uint64_t at);

}  // namespace stat_program
