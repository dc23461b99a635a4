// A rail in one row: how it does now, and what the last check found, and when that was.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "pullman/rails.h"

// It carries messages, and packets of all sizes pass.
bool is_fine(const pullman::RailView& rail);
// For who looks after the network.
std::string verdict(const pullman::RailView& rail);
// Adds state, reason, finding, its meaning, how old it is, and the verdict.
void add_verdict(nlohmann::ordered_json& row, const pullman::RailView& rail);
