// The library's log: rare events on cold paths, never per packet. Level by PULLMAN_LOG
// (trace, debug, info, warn, error, off; default warn), to standard error.
#pragma once

#include <spdlog/logger.h>

namespace pullman {

spdlog::logger& log();

}  // namespace pullman
