// The library's log: rare events on cold paths, never per packet. It goes to standard error;
// PULLMAN_LOG sets its level (trace, debug, info, warn, error, off; default warn).
#pragma once

#include <spdlog/logger.h>

#include <string_view>

namespace pullman {

spdlog::logger& log();

// Says what was asked for and is no warning: it is shown where warnings are, and not remembered.
void say(std::string_view text);

}  // namespace pullman
