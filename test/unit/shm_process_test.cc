// What a process finds out about another one of its user.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "shared_folder.h"
#include "shm/pairs.h"

namespace pullman::shm {
namespace {

// A child that waits to be killed.
class Child {
 public:
  Child() : id_(fork()) {
    if (id_ != 0) return;
    for (;;) pause();
  }
  ~Child() { end(); }
  pid_t id() const { return id_; }
  void end() {
    if (id_ <= 0) return;
    kill(id_, SIGKILL);
    waitpid(std::exchange(id_, 0), nullptr, 0);
  }

 private:
  pid_t id_;
};

bool is_readable(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace

TEST_CASE("the memory of a process can be read while it runs, by who knows its word") {
  const std::array<std::byte, 5000> bytes{std::byte{3}, std::byte{4}};
  Child child;  // has a copy of all this
  const pid_t id = child.id();
  CHECK(can_read(id, own_word()));
  Word wrong = own_word();
  wrong.bits ^= 1;
  CHECK_FALSE(can_read(id, wrong));
  CHECK_FALSE(can_read(id, {}));

  std::array<std::byte, 5000> read{};
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  CHECK(read_memory(id, address, read));
  CHECK(read == bytes);
  CHECK_FALSE(read_memory(id, 16, read));

  child.end();
  CHECK_FALSE(can_read(id, own_word()));
  CHECK_FALSE(read_memory(id, address, read));
}

TEST_CASE("a watch tells that one of its processes has ended, until that is watched no more") {
  ProcessWatch watch;
  Child first;
  Child second;
  ProcessWatch::Watched one(watch, process_of(first.id()));
  {
    ProcessWatch::Watched other(watch, process_of(second.id()));
    CHECK_FALSE(watch.any_ended());
    CHECK(other.runs());

    second.end();

    CHECK(watch.any_ended());
    CHECK(is_readable(watch.descriptor()));
    CHECK_FALSE(other.runs());
    CHECK(one.runs());
  }
  CHECK_FALSE(watch.any_ended());
  CHECK_FALSE(is_readable(watch.descriptor()));
}

namespace {

// Three children that are watched.
struct WatchedChildren {
  explicit WatchedChildren(std::size_t max_descriptors) : watch(max_descriptors) {
    for (const Child& child : children) watched.emplace_back(watch, process_of(child.id()));
  }

  ProcessWatch watch;
  std::array<Child, 3> children;
  std::vector<ProcessWatch::Watched> watched;
};

}  // namespace

TEST_CASE("processes that have no descriptor are polled in turn") {
  WatchedChildren all(1);
  auto& [watch, children, watched] = all;
  REQUIRE(watch.polled() == 2);

  children[2].end();
  CHECK_FALSE(is_readable(watch.descriptor()));
  watch.poll_next(1);
  CHECK_FALSE(watch.any_ended());
  watch.poll_next(1);
  CHECK(watch.any_ended());
  CHECK_FALSE(watched[2].runs());
  CHECK(watched[1].runs());

  watched.pop_back();
  CHECK_FALSE(watch.any_ended());
  children[1].end();
  watch.poll_next(100);
  CHECK_FALSE(watched[1].runs());
  watched.pop_back();
  CHECK(watch.polled() == 0);
}

TEST_CASE("the next process keeps its turn when one that was polled before is watched no more") {
  WatchedChildren all(0);
  auto& [watch, children, watched] = all;
  watch.poll_next(2);
  children[2].end();

  watched[0] = {};

  watch.poll_next(1);
  CHECK(watch.any_ended());
}

TEST_CASE("one process can be polled out of turn") {
  ProcessWatch watch(0);
  Child child;
  const ProcessWatch::Watched watched(watch, process_of(child.id()));
  child.end();
  CHECK(watched.runs());
  watched.poll();
  CHECK_FALSE(watched.runs());
  CHECK(watch.any_ended());
}

TEST_CASE("a process that cannot be asked about, for want of descriptors, is not taken for ended") {
  ProcessWatch watch(0);
  Child child;
  const ProcessName name = process_of(child.id());
  const ProcessWatch::Watched watched(watch, name);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit none = before;
  none.rlim_cur = 3;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);

  const bool known = process_of(child.id()) == name;
  const bool ended = has_ended(name);
  watch.poll_next(1);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);

  CHECK_FALSE(known);  // no test: it could be asked about
  CHECK_FALSE(ended);
  CHECK(watched.runs());

  child.end();
  CHECK(has_ended(name));
}

TEST_CASE("a process whose first thread has ended runs as long as another does") {
  const pid_t child = fork();
  if (child == 0) {
    pthread_t other;
    pthread_create(
        &other, nullptr,
        [](void*) -> void* {
          for (;;) pause();
        },
        nullptr);
    syscall(SYS_exit, 0);  // of this thread; pthread_exit() would unwind
  }
  const ProcessName name = process_of(child);
  const std::string state = "/proc/" + std::to_string(child) + "/stat";
  const auto first_thread_ended = [&] {
    std::ifstream file(state);
    std::string line;
    std::getline(file, line);
    return line.find(") Z ") != std::string::npos;
  };
  while (!first_thread_ended()) usleep(1000);

  CHECK_FALSE(has_ended(name));
  CHECK(process_of(child) == name);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(has_ended(name));
}

TEST_CASE("a descriptor that is free again is used for the next process") {
  ProcessWatch watch(1);
  Child first;
  Child second;
  { const ProcessWatch::Watched one(watch, process_of(first.id())); }
  const ProcessWatch::Watched other(watch, process_of(second.id()));
  CHECK(watch.polled() == 0);
  second.end();
  CHECK(is_readable(watch.descriptor()));
}

TEST_CASE("a process that had ended before, or another one with its id, is not watched") {
  ProcessWatch watch;
  Child child;
  ProcessName name = process_of(child.id());
  SECTION("another one") {
    ++name.started;
  }
  SECTION("it has ended") {
    child.end();
  }
  const ProcessWatch::Watched watched(watch, name);
  CHECK(watched.runs());  // as far as is known
  CHECK_FALSE(watch.any_ended());
}

TEST_CASE("an end of a pair knows the other's process once they have met") {
  SharedFolder folder;
  SegmentPairs pairs(folder.path());
  Pair creator = pairs.create({});
  CHECK_FALSE(creator.has_joined());
  const pid_t child = fork();
  if (child == 0) {
    SegmentPairs own(folder.path());
    Pair other = own.join(creator.name(), {});
    other.meet();
    for (;;) pause();
  }
  while (!creator.has_joined()) usleep(1000);
  creator.meet();
  CHECK(creator.is_alive_there());
  CHECK_FALSE(pairs.any_ended());

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  CHECK_FALSE(creator.is_alive_there());
  CHECK(pairs.any_ended());
  CHECK_FALSE(creator.has_ended());  // it had no time to say so
}

}  // namespace pullman::shm
