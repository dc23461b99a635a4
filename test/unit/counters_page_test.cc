// What a world tells of its counters at its end: letters that are not believed, and the page.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/version.h"
#include "world/counters.h"

namespace pullman::world {
namespace {

std::size_t place_of(std::string_view name) {
  const auto& names = counter_names();
  const auto found = std::find(names.begin(), names.end(), name);
  REQUIRE(found != names.end());
  return static_cast<std::size_t>(found - names.begin());
}

Counters sent(std::uint64_t messages) {
  Counters counters(counter_names().size());
  counters[place_of("messages_sent")] = messages;
  return counters;
}

}  // namespace

TEST_CASE("a context's counters and high-water marks are told, and nothing that is no quantity") {
  telemetry::Rows rows;
  rows.context.stats.messages_sent = 7;
  rows.context.max_in_flight = 9;
  rows.context.process = 11;
  const Counters counters = counters_of(rows);
  CHECK(counters.at(place_of("messages_sent")) == 7);
  CHECK(counters.at(place_of("max_in_flight")) == 9);
  CHECK(std::count(counters.begin(), counters.end(), 11) == 0);
}

TEST_CASE("a letter brings the counters of several ranks, and overwrites none that are known") {
  AllCounters all{{0, sent(1)}, {1, sent(2)}};
  CHECK(decode(encode({{1, sent(50)}, {2, sent(3)}}), 3, all));
  CHECK(all == AllCounters{{0, sent(1)}, {1, sent(2)}, {2, sent(3)}});
}

TEST_CASE(
    "a letter that is cut, longer, of another version, or of a rank that is none adds nothing") {
  const Bytes letter = encode({{0, sent(1)}, {2, sent(3)}});
  AllCounters all;
  CHECK_FALSE(decode(letter, 2, all));  // there is no rank 2
  // Behind a whole number of ranks it is a letter about fewer.
  const std::size_t each = (letter.size() - 5) / 2;
  for (std::size_t length = 0; length < letter.size(); ++length) {
    if (length >= 5 && (length - 5) % each == 0) continue;
    CHECK_FALSE(decode(std::span(letter).first(length), 3, all));
  }
  Bytes longer = letter;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode(longer, 3, all));
  for (std::size_t at = 0; at < 5; ++at) {
    Bytes other = letter;
    other[at] ^= std::byte{1};
    CHECK_FALSE(decode(other, 3, all));
  }
  CHECK(all.empty());
}

TEST_CASE("the page has minimum, median and maximum with their ranks, and no zeros") {
  const Page page{.size = 5,
                  .duration = std::chrono::milliseconds(12'340),
                  .counters = {{0, sent(30)}, {1, sent(10)}, {2, sent(20)}, {4, sent(40)}}};
  const std::string table = to_table(page);
  INFO(table);
  CHECK(table.starts_with("Pullman " + std::string(kLibraryVersion) +
                          ": 5 ranks, 12.3 s; without rank 3"));
  CHECK_THAT(table, Catch::Matches("[^]*messages_sent +10 +1 +20 +40 +4 +100\n[^]*"));
  CHECK_THAT(table, !Catch::Contains("messages_received"));

  const std::string json = to_json(page);
  INFO(json);
  CHECK_THAT(json, Catch::Contains("\"missing\": [3]"));
  CHECK_THAT(json, Catch::Contains("\"messages_sent\": {\"minimum\": 10, \"minimum_rank\": 1, "
                                   "\"median\": 20, \"maximum\": 40, \"maximum_rank\": 4, "
                                   "\"sum\": 100}"));
}

TEST_CASE("high-water marks have no sum") {
  Counters counters(counter_names().size());
  counters[place_of("max_in_flight")] = 9;
  const Page page{.size = 1, .counters = {{0, counters}}};
  CHECK_THAT(to_table(page), Catch::Matches("[^]*max_in_flight +9 +0 +9 +9 +0 +-\n[^]*"));
  CHECK_THAT(to_json(page), Catch::Contains("\"sum\": null"));
}

TEST_CASE("of ranks with equal counters the lowest is named, and a page without any is one") {
  const Page equal{.size = 3, .counters = {{0, sent(5)}, {1, sent(5)}, {2, sent(5)}}};
  CHECK_THAT(to_table(equal), Catch::Matches("[^]*messages_sent +5 +0 +5 +5 +0 +15\n[^]*"));
  CHECK_THAT(to_table(equal), !Catch::Contains("without"));
  CHECK_THAT(to_table({.size = 2}), Catch::Contains("without ranks 0 and 1"));
}

}  // namespace pullman::world
