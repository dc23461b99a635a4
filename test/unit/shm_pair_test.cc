#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "shared_folder.h"
#include "shm/pairs.h"

namespace pullman::shm {
namespace {

constexpr Secret kSecret{std::byte{1}, std::byte{2}};

struct Ends {
  static void write(Pair& end, char letter) {
    std::byte* place = end.out().reserve(1);
    REQUIRE(place != nullptr);
    *place = static_cast<std::byte>(letter);
    end.out().commit();
  }
  static char read(Pair& end) {
    const auto record = end.in().front();
    if (!record) return 0;
    const auto letter = static_cast<char>(record->front());
    end.in().pop();
    return letter;
  }

  SharedFolder folder;
  SegmentPairs pairs{folder.path()};
  Pair creator = pairs.create(kSecret);
  Pair other = pairs.join(creator.name(), kSecret);
};

}  // namespace

TEST_CASE("each end of a pair reads what the other writes") {
  Ends ends;
  Ends::write(ends.creator, 'a');
  Ends::write(ends.other, 'b');
  CHECK(Ends::read(ends.other) == 'a');
  CHECK(Ends::read(ends.creator) == 'b');
  CHECK(Ends::read(ends.creator) == 0);
}

TEST_CASE("an end that sleeps is to be woken once for what is written") {
  Ends ends;
  Ends::write(ends.creator, 'a');
  CHECK_FALSE(ends.creator.must_wake());
  CHECK(Ends::read(ends.other) == 'a');

  CHECK(ends.other.set_sleeping());
  CHECK_FALSE(ends.other.has_news());
  Ends::write(ends.creator, 'b');
  CHECK(ends.creator.must_wake());
  Ends::write(ends.creator, 'c');
  CHECK_FALSE(ends.creator.must_wake());
}

TEST_CASE("an end looks again each time it says anew that it sleeps") {
  Ends ends;
  CHECK(ends.other.set_sleeping());
  CHECK_FALSE(ends.other.set_sleeping());
  SECTION("it was woken") {
    CHECK(ends.creator.must_wake());
  }
  SECTION("it had something to do") {
    ends.other.clear_sleeping();
    CHECK_FALSE(ends.creator.must_wake());
  }
  CHECK(ends.other.set_sleeping());
}

TEST_CASE("an end does not sleep on a record, nor on an end of the other") {
  Ends ends;
  SECTION("a record") {
    Ends::write(ends.creator, 'a');
  }
  SECTION("the end") {
    ends.creator.end();
  }
  ends.other.set_sleeping();
  CHECK(ends.other.has_news());
}

TEST_CASE("what an end wrote before it ended can be read") {
  Ends ends;
  Ends::write(ends.creator, 'a');
  CHECK_FALSE(ends.other.has_ended());
  ends.creator.end();
  CHECK(ends.other.has_ended());
  CHECK_FALSE(ends.creator.has_ended());
  CHECK(Ends::read(ends.other) == 'a');
}

TEST_CASE("two processes send a million records each way through a pair") {
  constexpr std::uint32_t kCount = 1'000'000;
  Ends ends;
  const auto exchange = [](Pair& end) {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    while (sent < kCount || received < kCount) {
      std::byte* place = sent < kCount ? end.out().reserve(sizeof sent + sent % 40) : nullptr;
      if (place != nullptr) {
        std::memcpy(place, &sent, sizeof sent);
        end.out().commit();
        ++sent;
      }
      const auto record = end.in().front();
      if (!record) {
        if (end.in().is_corrupt()) return false;
        if (place == nullptr) usleep(0);
        continue;
      }
      std::uint32_t number = 0;
      std::memcpy(&number, record->data(), sizeof number);
      if (number != received || record->size() != sizeof number + number % 40) return false;
      end.in().pop();
      ++received;
    }
    return true;
  };
  const pid_t child = fork();
  if (child == 0) _exit(exchange(ends.other) ? 0 : 1);
  REQUIRE(child > 0);

  CHECK(exchange(ends.creator));

  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace pullman::shm
