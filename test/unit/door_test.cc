// telemetry/door: other processes ask at it, and nobody waits for them.
#include "telemetry/door.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "shared_folder.h"
#include "shm/owned_file.h"

namespace pullman::telemetry {
namespace {

using std::chrono::milliseconds;

std::vector<std::byte> message_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Letting a visitor in and hearing it may take two.
std::optional<Door::Question> next_of(Door& door) {
  auto question = door.next();
  return question ? question : door.next();
}

}  // namespace

TEST_CASE("what a visitor asks is heard, and the answer is for that visitor") {
  const shm::SharedFolder folder;
  const std::filesystem::path path = folder.path() / "some.job";
  {
    Door door(path);
    CHECK_FALSE(door.next());
    struct stat facts {};
    REQUIRE(stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0600);

    Knocker one(path);
    Knocker other(path);
    REQUIRE(one.ask(message_of("one?")));
    auto question = next_of(door);
    REQUIRE(question);
    CHECK(question->bytes == message_of("one?"));
    REQUIRE(other.ask(message_of("other?")));
    const auto second = next_of(door);
    REQUIRE(second);
    CHECK(second->visitor != question->visitor);

    CHECK(door.answer(question->visitor, message_of("yes")));
    CHECK(one.hear(milliseconds(0)) == message_of("yes"));
    CHECK_FALSE(other.hear(milliseconds(0)));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_THROWS_AS(Knocker(path), shm::MemoryError);
}

TEST_CASE("a visitor that leaves makes room, and one too many is sent away") {
  const shm::SharedFolder folder;
  Door door(folder.path() / "some.job");
  std::vector<Knocker> visitors;
  for (int i = 0; i < 8; ++i) {
    visitors.emplace_back(folder.path() / "some.job");
    CHECK_FALSE(door.next());
  }
  Knocker late(folder.path() / "some.job");
  CHECK_FALSE(door.next());
  CHECK_FALSE(late.hear(milliseconds(0)));
  CHECK(late.is_over());

  visitors.pop_back();
  CHECK_FALSE(door.next());
  Knocker next(folder.path() / "some.job");
  REQUIRE(next.ask(message_of("me?")));
  CHECK(next_of(door));
}

TEST_CASE("a visitor that cannot be let in for want of descriptors wakes nobody again and again") {
  const shm::SharedFolder folder;
  Door door(folder.path() / "some.job");
  Knocker visitor(folder.path() / "some.job");
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const bool heard = door.next().has_value();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(heard);
  pollfd watched{.fd = door.descriptor(), .events = POLLIN, .revents = 0};
  CHECK(poll(&watched, 1, 0) == 0);

  REQUIRE(visitor.ask(message_of("me?")));
  Knocker next(folder.path() / "some.job");
  CHECK_FALSE(door.next());
  CHECK(next_of(door));
}

TEST_CASE("a visitor that does not read loses answers, and the door goes on") {
  const shm::SharedFolder folder;
  Door door(folder.path() / "some.job");
  Knocker deaf(folder.path() / "some.job");
  REQUIRE(deaf.ask(message_of("?")));
  const auto question = next_of(door);
  REQUIRE(question);
  const std::vector<std::byte> answer(8000);
  unsigned taken = 0;
  while (taken < 10000 && door.answer(question->visitor, answer)) ++taken;
  CHECK(taken > 0);
  CHECK(taken < 10000);
  Knocker other(folder.path() / "some.job");
  REQUIRE(other.ask(message_of("me?")));
  CHECK(next_of(door));
}

TEST_CASE("a path that is too long for a socket is a door, too") {
  const shm::SharedFolder folder;
  const std::filesystem::path deep = folder.path() / std::string(100, 'd');
  std::filesystem::create_directory(deep);
  Door door(deep / "some.job");
  Knocker visitor(deep / "some.job");
  REQUIRE(visitor.ask(message_of("?")));
  CHECK(next_of(door));
}

TEST_CASE("what is longer than may be said is not heard") {
  const shm::SharedFolder folder;
  Door door(folder.path() / "some.job");
  Knocker visitor(folder.path() / "some.job");
  REQUIRE(visitor.ask(std::vector<std::byte>(kMaxDoorBytes + 1)));
  CHECK_FALSE(next_of(door));
  REQUIRE(visitor.ask(std::vector<std::byte>(kMaxDoorBytes)));
  CHECK(next_of(door));
}

}  // namespace pullman::telemetry
