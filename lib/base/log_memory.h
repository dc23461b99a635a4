// Remembers what was warned of: each kind once, with how often and when. Two warnings are of one
// kind if they differ in words with digits only. There are at most kKinds; the rest is counted
// together.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/time.h"

namespace pullman {

class LogMemory final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static constexpr std::size_t kKinds = 48;
  static constexpr std::size_t kKindLetters = 48;

  struct Entry {
    std::string kind;  // the text with # for each such word, cut
    std::uint64_t times = 0;
    Instant first{};
    Instant last{};
    std::string text;  // the last one
  };

  std::vector<Entry> entries();

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

  std::vector<Entry> entries_;
};

// The one of this process, which log() writes to.
LogMemory& log_memory();

}  // namespace pullman
