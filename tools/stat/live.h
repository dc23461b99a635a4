// The live view of pullman-stat, on a terminal.
#pragma once

#include <chrono>

#include "stat/source.h"

namespace stat_program {

// Shows the contexts, and reads them again at every interval, until the user quits. Returns false
// if the terminal can show nothing.
bool show_live(const Source& source, std::chrono::milliseconds interval);

}  // namespace stat_program
