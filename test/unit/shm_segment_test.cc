#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "shared_folder.h"
#include "shm/process.h"
#include "shm/segment.h"

namespace pullman::shm {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytes = 10'000;

struct Folder : SharedFolder {
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path()), fs::directory_iterator()));
  }
};

Secret secret(unsigned salt) {
  Secret bytes{};
  bytes.fill(static_cast<std::byte>(salt));
  return bytes;
}

// Ends the process as SIGKILL would, after it has created a segment.
void create_and_die(const Folder& folder) {
  const pid_t child = fork();
  if (child == 0) {
    const Segment segment = Segment::create(kBytes, secret(1), folder.path());
    _exit(0);
  }
  REQUIRE(child > 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
}

}  // namespace

TEST_CASE("a segment is zero, and what one end writes the other reads") {
  const Folder folder;
  const Segment here = Segment::create(kBytes, secret(1), folder.path());
  const Segment there = Segment::open(here.name(), kBytes, secret(1), folder.path());

  CHECK(here.bytes().size() == kBytes);
  CHECK(there.bytes().size() == kBytes);
  CHECK(reinterpret_cast<std::uintptr_t>(here.bytes().data()) % 64 == 0);
  CHECK(std::all_of(there.bytes().begin(), there.bytes().end(),
                    [](std::byte byte) { return byte == std::byte{0}; }));
  here.bytes().back() = std::byte{42};
  CHECK(there.bytes().back() == std::byte{42});
}

TEST_CASE("a segment is opened only as what it was told to be") {
  const Folder folder;
  const Segment here = Segment::create(kBytes, secret(1), folder.path());

  CHECK_THROWS_AS(Segment::open(here.name(), kBytes, secret(2), folder.path()), MemoryError);
  CHECK_THROWS_AS(Segment::open(here.name(), kBytes + 1, secret(1), folder.path()), MemoryError);
  CHECK_THROWS_AS(Segment::open(here.name() + "0", kBytes, secret(1), folder.path()), MemoryError);
  CHECK_THROWS_AS(Segment::open("../" + here.name(), kBytes, secret(1), folder.path() / "x"),
                  MemoryError);
  fs::create_symlink(folder.path() / here.name(), folder.path() / "pullman.link");
  CHECK_THROWS_AS(Segment::open("pullman.link", kBytes, secret(1), folder.path()), MemoryError);
}

TEST_CASE("nobody but the user can open a segment") {
  const Folder folder;
  const Segment here = Segment::create(kBytes, secret(1), folder.path());
  CHECK(fs::status(folder.path() / here.name()).permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a segment without a name stays mapped at both ends") {
  const Folder folder;
  Segment here = Segment::create(kBytes, secret(1), folder.path());
  const Segment there = Segment::open(here.name(), kBytes, secret(1), folder.path());

  here.unlink();

  CHECK(folder.files() == 0);
  here.bytes()[5] = std::byte{7};
  CHECK(there.bytes()[5] == std::byte{7});
}

TEST_CASE("the creator of a segment removes its name when it ends, and only then") {
  const Folder folder;
  {
    Segment here = Segment::create(kBytes, secret(1), folder.path());
    {
      const Segment there = Segment::open(here.name(), kBytes, secret(1), folder.path());
      Segment moved = std::move(here);
      here = std::move(moved);
    }
    CHECK(folder.files() == 1);
  }
  CHECK(folder.files() == 0);
}

TEST_CASE("where there is no room for a segment none is created") {
  const Folder folder;
  CHECK_THROWS_AS(Segment::create(std::size_t{1} << 50, secret(1), folder.path()), MemoryError);
  CHECK(folder.files() == 0);
  CHECK_THROWS_AS(Segment::create(kBytes, secret(1), folder.path() / "nowhere"), MemoryError);
}

TEST_CASE("segments of processes that are gone are swept, and no others") {
  const Folder folder;
  const Segment here = Segment::create(kBytes, secret(1), folder.path());
  create_and_die(folder);
  create_and_die(folder);
  fs::create_directory(folder.path() / "pullman.x");
  REQUIRE(folder.files() == 4);

  CHECK(sweep(folder.path()) == 2);

  CHECK(fs::exists(folder.path() / here.name()));
  CHECK(folder.files() == 2);
}

TEST_CASE("a process is alive until it ends, and is not another one that has its id") {
  CHECK_FALSE(has_ended(this_process()));
  ProcessName other = this_process();
  ++other.started;
  CHECK(has_ended(other));

  const pid_t child = fork();
  if (child == 0) _exit(0);
  const ProcessName ended = process_of(child);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(has_ended(ended));
}

}  // namespace pullman::shm
