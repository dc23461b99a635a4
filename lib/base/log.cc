#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace pullman {

spdlog::logger& log() {
  static const std::unique_ptr<spdlog::logger> logger = [] {
    auto made = std::make_unique<spdlog::logger>("pullman",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    const char* level = std::getenv("PULLMAN_LOG");
    made->set_level(level != nullptr ? spdlog::level::from_str(level) : spdlog::level::warn);
    made->set_pattern("%H:%M:%S.%f %n %l: %v");
    return made;
  }();
  return *logger;
}

}  // namespace pullman
