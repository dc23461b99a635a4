// A small drawing: curves over one time line, and bands behind them. Needs no other program.
#pragma once

#include <string>
#include <vector>

namespace perf {

struct Curve {
  std::string name;
  std::vector<double> values;  // Gb/s, one for each step
};

struct Band {
  std::string name;
  double from_ms = 0;
  double to_ms = 0;
};

struct Drawing {
  double step_ms = 0;
  std::vector<Curve> curves;  // the last is the one that matters
  std::vector<Band> bands;
};

std::string to_svg(const Drawing& drawing);

}  // namespace perf
