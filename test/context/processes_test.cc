// What a process does beside its contexts: it forks, takes signals, sets the clock, runs out of
// descriptors.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "base/fork_mark.h"
#include "context/exchange.h"
#include "pullman/world.h"

namespace pullman::test {
namespace {

using std::chrono::seconds;

struct Ended {
  int status;
  std::string said;  // on stderr
};

// Runs `body` in a child, which ends with what it returns.
Ended in_child(const std::function<int()>& body) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);  // the test program has its own
    dup2(pipe_ends[1], STDERR_FILENO);
    try {
      _exit(body());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(99);
  }
  close(pipe_ends[1]);
  Ended ended{};
  char bytes[512];
  for (ssize_t n; (n = read(pipe_ends[0], bytes, sizeof bytes)) > 0;) {
    ended.said.append(bytes, static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  REQUIRE(waitpid(child, &ended.status, 0) == child);
  return ended;
}

// A context with a message on its way to another.
struct Busy {
  explicit Busy(const Config& config = config_of("udp")) : other(config_of("udp")) {
    context.emplace(config);
    there = context->connect(other.address());
    other.receive(kAnyPeer, 1, 0, room, received);
    context->send(there, 1, bytes, sent);
  }
  bool ends_well() {
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!(sent.done() && received.done()) && std::chrono::steady_clock::now() < end) {
      context->progress();
      other.progress();
    }
    return sent.status() == Status::kOk && received.status() == Status::kOk && room == bytes;
  }

  std::vector<std::byte> bytes = content(1, 200'000);
  std::vector<std::byte> room = std::vector<std::byte>(bytes.size());
  Request received;
  Request sent;
  Context other;
  std::optional<Context> context;
  PeerId there;
};

}  // namespace

TEST_CASE("a child of fork() may destroy the context, and open another; its parent goes on",
          "[process]") {
  Config config = config_of("udp");
  SECTION("that polls") {}
  SECTION("that many threads call") {
    config.threads = Config::Threads::kMany;
  }
  SECTION("that has a thread of its own") {
    config.progress = Config::Progress::kThread;
  }
  SECTION("that shares memory") {
    config.shared_memory = true;
  }
  Busy busy(config);
  CHECK_FALSE(busy.context->is_inherited());

  const Ended child = in_child([&] {
    if (!busy.context->is_inherited()) return 1;
    if (busy.context->close() != Status::kClosed) return 2;
    busy.context.reset();
    Context own(config_of("udp"));
    if (own.is_inherited() || own.close() != Status::kOk) return 3;
    return 0;
  });

  INFO(child.said);
  CHECK(child.status == 0);
  CHECK_FALSE(busy.context->is_inherited());
  CHECK(busy.ends_well());
}

TEST_CASE("a child of fork() that uses its parent's context ends with a sentence", "[process]") {
  Config config = config_of("udp");
  if (GENERATE(true, false)) config.threads = Config::Threads::kMany;
  Busy busy(config);
  const std::size_t call = GENERATE(0, 1, 2, 3);

  const Ended child = in_child([&] {
    Request request;
    if (call == 0) busy.context->progress();
    if (call == 1) busy.context->send(busy.there, 2, {}, request);
    if (call == 2) busy.context->wait(busy.sent);
    if (call == 3) busy.context->stats();
    return 0;
  });

  CHECK(WIFSIGNALED(child.status));
  CHECK(child.said.find("after fork() only the parent may") != std::string::npos);
  CHECK(busy.ends_well());
}

TEST_CASE("a child that comes back from a callback makes no turn", "[process]") {
  Busy busy;
  int status = 0;
  CallbackRequest copied(*busy.context, [&](CallbackRequest&) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGABRT, SIG_DFL);
      close(STDERR_FILENO);
      return;
    }
    waitpid(child, &status, 0);
  });
  busy.context->send(busy.there, 7, {}, copied);
  CHECK(busy.ends_well());
  CHECK(copied.done());
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("a world is its parent's, too", "[process]") {
  WorldOptions options;
  options.config = config_of("udp");
  std::optional<World> world(World::create(1, options));
  const Ended child = in_child([&] {
    world.reset();
    return 0;
  });
  INFO(child.said);
  CHECK(child.status == 0);
  world->barrier();
}

TEST_CASE("marks are set in a child, and only for those that are still there", "[process]") {
  std::uint8_t flags = 1;
  const ForkMark mark(flags, 2);
  { const ForkMark gone(flags, 4); }
  const Ended child = in_child([&] { return int{flags}; });
  CHECK(WEXITSTATUS(child.status) == 3);
  CHECK(flags == 1);
}

TEST_CASE("signals interrupt nothing", "[process]") {
  static std::atomic<int> signals;
  signals = 0;
  struct sigaction action {};
  action.sa_handler = [](int) { ++signals; };  // without SA_RESTART
  struct sigaction before {};
  REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 200},
                        .it_value = {.tv_sec = 0, .tv_usec = 200}};
  REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);

  Config config = config_of(GENERATE("udp", "tcp", "fabric"));
  {
    Exchange exchange(config);
    CHECK(exchange.works());
    CHECK(exchange.closes());
  }
  {
    // A call that sleeps takes as long as it was told to.
    Context context(config);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(context.wait_for_arrival(std::chrono::milliseconds(100)) == 0);
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(100));
  }

  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  CHECK(signals > 10);
}

TEST_CASE("a context that may not have enough descriptors says what to do, and leaves none open",
          "[process]") {
  const std::string driver = GENERATE("udp", "tcp");
  const Ended child = in_child([&] {
    Context(config_of(driver));  // libraries open what they keep
    const int next = dup(0);
    close(next);
    for (int room = 0; room < 200; ++room) {
      const rlimit limit{.rlim_cur = static_cast<rlim_t>(next + room), .rlim_max = 1000};
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
      bool opened = false;
      try {
        Context context(config_of(driver));
        opened = true;
      } catch (const Error& error) {
        const std::string why = error.what();
        const bool is_told = why.find("ulimit -n") != std::string::npos;
        const bool is_ours = room < 8;
        if (!is_told && (is_ours || why.find("Too many open files") == std::string::npos)) {
          std::fprintf(stderr, "%d: %s\n", room, error.what());
          return 2;
        }
      }
      const rlimit plenty{.rlim_cur = 1000, .rlim_max = 1000};
      setrlimit(RLIMIT_NOFILE, &plenty);
      const int again = dup(0);
      close(again);
      if (again != next) return 3;
      if (opened) return room == 0 ? 4 : 0;
    }
    return 5;
  });
  INFO(child.said);
  CHECK(child.status == 0);
}

}  // namespace pullman::test
