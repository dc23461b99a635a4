// The library's log: rare events on cold paths, never per packet. It goes to standard error;
// PULLMAN_LOG sets its level (trace, debug, info, warn, error, off; default warn).
#pragma once

#include <spdlog/logger.h>

namespace pullman {

spdlog::logger& log();

}  // namespace pullman
