// pullman-info --check --svg: a heat map of what the checks of a job found. A row is a host that
// asked, a column a process that was asked, and a cell has a field for each rail.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace info {

// Reads what --map wrote. Throws std::runtime_error if it is not that.
nlohmann::json read_map(const std::string& file);

// Returns the graph of one or several such maps, for draw(). Throws std::runtime_error if one is
// not what --map writes.
std::string job_picture(const std::vector<nlohmann::json>& maps);

}  // namespace info
