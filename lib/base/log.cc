#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/log_memory.h"

namespace pullman {

// It is never destroyed: threads may still log while the process ends.
spdlog::logger& log() {
  static spdlog::logger* const logger = [] {
    const auto out = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    const std::shared_ptr<spdlog::sinks::sink> memory(&log_memory(), [](spdlog::sinks::sink*) {});
    auto made = std::make_unique<spdlog::logger>("pullman", spdlog::sinks_init_list{out, memory});
    made->set_pattern("%H:%M:%S.%f %n %l: %v");
    made->set_level(spdlog::level::warn);
    if (const char* given = std::getenv("PULLMAN_LOG")) {
      const std::string word = boost::algorithm::to_lower_copy(std::string(given));
      const auto level = spdlog::level::from_str(word);
      // from_str() returns `off` for a word that it does not know.
      if (level != spdlog::level::off || word == "off") {
        // Warnings are remembered whether they are shown or not.
        out->set_level(level);
        made->set_level(std::min(level, spdlog::level::warn));
      } else {
        made->warn("PULLMAN_LOG='{}' is none of trace, debug, info, warn, error, critical, off",
                   given);
      }
    }
    return made.release();
  }();
  return *logger;
}

void say(std::string_view text) {
  spdlog::sinks::sink& out = *log().sinks().front();
  if (out.level() > spdlog::level::warn) return;
  out.log({log().name(), spdlog::level::info, {text.data(), text.size()}});
}

}  // namespace pullman
