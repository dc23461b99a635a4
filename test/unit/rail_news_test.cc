// failover/rail_news.h: what a program is told of rails that fail and return.
#include "failover/rail_news.h"

#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>

namespace pullman::failover {
namespace {

TEST_CASE("a change of a rail is news until it is taken") {
  RailNews news;
  RailNews::Note note;
  CHECK(news.oldest() == nullptr);

  news.handle_change(note, true);

  REQUIRE(news.oldest() == &note);
  CHECK(note.carries);
  CHECK(RailNews::take(note) == 1);
  CHECK(news.oldest() == nullptr);
  CHECK_FALSE(RailNews::has_news(note));
}

TEST_CASE("a change to the state that a rail already has is no news") {
  RailNews news;
  RailNews::Note note;
  news.handle_change(note, false);
  CHECK(news.oldest() == nullptr);
  news.handle_change(note, true);
  RailNews::take(note);
  news.handle_change(note, true);
  CHECK(news.oldest() == nullptr);
}

TEST_CASE("a rail that flaps unread is one note with the number of changes") {
  RailNews news;
  RailNews::Note note;
  news.handle_change(note, true);
  RailNews::take(note);

  for (int i = 0; i < 1000; ++i) news.handle_change(note, i % 2 != 0);

  REQUIRE(news.oldest() == &note);
  CHECK(note.carries);
  CHECK(RailNews::take(note) == 1000);
  CHECK(news.oldest() == nullptr);
}

TEST_CASE("a rail that flaps keeps its place and delays no other") {
  RailNews news;
  std::array<RailNews::Note, 3> notes;
  for (RailNews::Note& note : notes) news.handle_change(note, true);
  news.handle_change(notes[0], false);
  news.handle_change(notes[2], false);

  for (RailNews::Note& note : notes) {
    REQUIRE(news.oldest() == &note);
    RailNews::take(note);
  }
  news.handle_change(notes[2], true);
  news.handle_change(notes[1], false);
  CHECK(news.oldest() == &notes[2]);
  CHECK(notes[2].since < notes[1].since);
}

TEST_CASE("a full count of changes does not wrap") {
  RailNews news;
  RailNews::Note note;
  note.changes = std::numeric_limits<std::uint32_t>::max();
  news.handle_change(note, true);
  CHECK(RailNews::take(note) == std::numeric_limits<std::uint32_t>::max());
}

TEST_CASE("nothing is told of a rail that ends or is forgotten") {
  RailNews news;
  auto ends = std::make_unique<RailNews::Note>();
  RailNews::Note forgotten;
  RailNews::Note stays;
  news.handle_change(*ends, true);
  news.handle_change(forgotten, true);
  news.handle_change(stays, true);

  ends.reset();
  RailNews::forget(forgotten);
  RailNews::forget(forgotten);

  CHECK(news.oldest() == &stays);
  CHECK(RailNews::take(stays) == 1);
  CHECK(news.oldest() == nullptr);
}

}  // namespace
}  // namespace pullman::failover
