#include "base/log_memory.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/algorithm/cxx11/any_of.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/join.hpp>
#include <boost/algorithm/string/split.hpp>

namespace pullman {
namespace {

constexpr std::size_t kMaxLetters = 240;
constexpr const char* kRest = "other warnings";

// Returns the text with # for each word that has a digit: numbers, addresses, names of NICs.
std::string kind_of(std::string_view text) {
  std::vector<std::string> words;
  boost::algorithm::split(words, text, boost::algorithm::is_space());
  for (std::string& word : words) {
    if (boost::algorithm::any_of(word, boost::algorithm::is_digit())) word = "#";
  }
  return boost::algorithm::join(words, " ").substr(0, LogMemory::kKindLetters);
}

Instant now() {
  return Instant(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

void LogMemory::sink_it_(const spdlog::details::log_msg& message) {
  if (message.level < spdlog::level::warn) return;
  const std::string_view text(message.payload.data(),
                              std::min(message.payload.size(), kMaxLetters));
  std::string kind = kind_of(text);
  const auto is = [&kind](const Entry& entry) { return entry.kind == kind; };
  auto at = std::find_if(entries_.begin(), entries_.end(), is);
  if (at == entries_.end() && entries_.size() + 1 >= kKinds) {
    kind = kRest;
    at = std::find_if(entries_.begin(), entries_.end(), is);
  }
  if (at == entries_.end()) {
    at = entries_.insert(entries_.end(), {.kind = std::move(kind), .first = now(), .text = {}});
  }
  ++at->times;
  at->last = now();
  at->text = text;
}

std::vector<LogMemory::Entry> LogMemory::entries() {
  const std::lock_guard lock(mutex_);
  return entries_;
}

LogMemory& log_memory() {
  static LogMemory* const memory = new LogMemory;  // it is never destroyed, as log() is not
  return *memory;
}

}  // namespace pullman
