#include "base/log_memory.h"

#include <spdlog/logger.h>

#include <catch2/catch.hpp>
#include <memory>

namespace pullman {
namespace {

struct Remembering {
  std::shared_ptr<LogMemory> memory = std::make_shared<LogMemory>();
  spdlog::logger log{"test", memory};
};

}  // namespace

TEST_CASE("each kind of warning is remembered once, with how often, when, and the last text") {
  Remembering remembering;
  remembering.log.warn("10.0.0.2:7100 has been silent for 12 s");
  remembering.log.warn("10.0.0.3:7101 has been silent for 5 s");
  remembering.log.error("no memory");
  remembering.log.info("nothing that a person is needed for");

  const std::vector<LogMemory::Entry> entries = remembering.memory->entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].kind == "# has been silent for # s");
  CHECK(entries[0].times == 2);
  CHECK(entries[0].text == "10.0.0.3:7101 has been silent for 5 s");
  CHECK(entries[0].first <= entries[0].last);
  CHECK(entries[1].kind == "no memory");
}

TEST_CASE("there are never more kinds than there is room for, and none is lost from the count") {
  Remembering remembering;
  for (char c = 'a'; c <= 'z'; ++c) {
    for (char d = 'a'; d <= 'e'; ++d) remembering.log.warn("kind {}{}", c, d);
  }
  const std::vector<LogMemory::Entry> entries = remembering.memory->entries();
  CHECK(entries.size() == LogMemory::kKinds);
  std::uint64_t times = 0;
  for (const LogMemory::Entry& entry : entries) times += entry.times;
  CHECK(times == 26 * 5);
}

}  // namespace pullman
