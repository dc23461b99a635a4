// What a context shows of itself to other processes (Config::counters).
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "context/exchange.h"
#include "telemetry/snapshot.h"
#include "unit/shared_folder.h"

namespace pullman::test {
namespace {

using std::chrono::milliseconds;
using telemetry::Snapshot;

struct Folder : shm::SharedFolder {
  Folder() { std::filesystem::permissions(path(), std::filesystem::perms::owner_all); }
};

Config shown_in(const Folder& folder) {
  Config config = config_of("udp");
  config.counters = folder.path().string();
  return config;
}

std::uint64_t sum(const Snapshot& snapshot, std::string_view table, std::string_view column) {
  std::uint64_t out = 0;
  const auto& rows = snapshot.table(table);
  for (const auto& row : rows.rows) out += rows.number(row, column);
  return out;
}

// Both contexts make turns until `seen` holds of what is shown in the folder, which is written now
// and then only. Returns whether it came to that.
template <typename Seen>
bool go_on_until(Context& one, Context& other, const Folder& folder, Seen seen) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (std::chrono::steady_clock::now() < end) {
    const auto look = std::chrono::steady_clock::now() + milliseconds(50);
    while (std::chrono::steady_clock::now() < look) {
      one.progress();
      other.progress();
    }
    for (const auto& file : telemetry::snapshots_in(folder.path())) {
      if (seen(telemetry::read_snapshot(file))) return true;
    }
  }
  return false;
}

// A message from one context to another.
struct Talk {
  explicit Talk(const Config& config)
      : one(config), other(config), there(one.connect(other.address())) {}

  bool say(std::size_t bytes) {
    const std::vector<std::byte> text(bytes);
    std::vector<std::byte> buffer(bytes);
    Request sent;
    Request received;
    other.receive(kAnyPeer, 1, 0, buffer, received);
    one.send(there, 1, text, sent);
    const auto end = std::chrono::steady_clock::now() + kLongest;
    while (!(sent.done() && received.done()) && std::chrono::steady_clock::now() < end) {
      one.progress();
      other.progress();
    }
    return sent.done() && received.done();
  }

  Context one;
  Context other;
  PeerId there;
};

}  // namespace

TEST_CASE("counters: what was sent and received is shown, and sums hold", "[counters]") {
  const Folder folder;
  Talk talk(shown_in(folder));
  for (int i = 0; i < 10; ++i) REQUIRE(talk.say(100'000));
  const auto all_of = [](std::string_view column) {
    return [column](const Snapshot& snapshot) {
      return sum(snapshot, "context", column) == 10 &&
             sum(snapshot, "context", "peers_waiting") == 0;
    };
  };
  CHECK(go_on_until(talk.one, talk.other, folder, all_of("messages_sent")));
  CHECK(go_on_until(talk.one, talk.other, folder, all_of("messages_received")));

  const auto files = telemetry::snapshots_in(folder.path());
  REQUIRE(files.size() == 2);
  std::uint64_t messages = 0;
  for (const auto& file : files) {
    const Snapshot snapshot = telemetry::read_snapshot(file);
    CHECK(telemetry::wrong_sums(snapshot).empty());
    messages += sum(snapshot, "context", "messages_received");
    CHECK(sum(snapshot, "context", "peers_connected") == 1);
    CHECK(snapshot.table("channel").rows.size() == 2 * snapshot.table("nic").rows.size());
    CHECK(sum(snapshot, "channel", "sent") > 0);
    CHECK(sum(snapshot, "rail", "bytes_sent") >= sum(snapshot, "context", "bytes_sent"));
    CHECK(sum(snapshot, "channel", "received") >= sum(snapshot, "context", "packets_received"));
    CHECK(sum(snapshot, "rail", "rtt") >= sum(snapshot, "rail", "rtt_least"));
    CHECK(sum(snapshot, "rail", "rtt_least") > 0);
    const auto& peers = snapshot.table("peer");
    REQUIRE(peers.rows.size() == 1);
    CHECK(peers.text(peers.rows.front(), "phase") == "connected");
    CHECK(peers.text(peers.rows.front(), "waits_for").empty());
    CHECK(sum(snapshot, "peer", "messages_sent") == sum(snapshot, "context", "messages_sent"));
    CHECK(sum(snapshot, "peer", "messages_arrived") == sum(snapshot, "peer", "messages_sent"));
  }
  CHECK(messages == 10);
}

TEST_CASE("counters: whom a context waits for, for what and since when", "[counters]") {
  const Folder folder;
  Talk talk(shown_in(folder));
  REQUIRE(talk.say(100));
  // The other end has no receive for it, and it is too long to be sent before there is one.
  const std::vector<std::byte> text(4 << 20);
  Request sent;
  talk.one.send(talk.there, 2, text, sent);

  // It is asked several times whether it lives, and answers; that is no progress.
  CHECK(go_on_until(talk.one, talk.other, folder, [](const Snapshot& snapshot) {
    const auto& peers = snapshot.table("peer");
    return !peers.rows.empty() && peers.text(peers.rows.front(), "waits_for") == "its receive" &&
           sum(snapshot, "context", "peers_waiting") == 1 &&
           sum(snapshot, "peer", "waits_since") < snapshot.written_at - 1'000'000'000;
  }));
  talk.one.abandon(talk.there);
}

TEST_CASE("counters: a context that sleeps is shown as asleep, with all that it did",
          "[counters]") {
  const Folder folder;
  Talk talk(shown_in(folder));
  REQUIRE(talk.say(100));
  talk.one.wait_for_arrival(milliseconds(300));
  std::atomic<bool> seen = false;
  std::thread watcher([&] {
    for (int i = 0; i < 500 && !seen; ++i) {
      for (const auto& file : telemetry::snapshots_in(folder.path())) {
        const Snapshot snapshot = telemetry::read_snapshot(file);
        seen = seen || (snapshot.asleep && sum(snapshot, "context", "messages_sent") == 1);
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  for (int i = 0; i < 50 && !seen; ++i) talk.one.wait_for_arrival(milliseconds(100));
  watcher.join();
  CHECK(seen);
}

TEST_CASE("counters: how often a peer's credit stopped what was to be sent", "[counters]") {
  const Folder folder;
  Config config = shown_in(folder);
  config.receive_buffer_bytes = 32 << 10;  // less than thirty packets
  Talk talk(config);
  REQUIRE(talk.say(100'000));
  CHECK(go_on_until(talk.one, talk.other, folder, [](const Snapshot& snapshot) {
    return sum(snapshot, "peer", "credit_stalls") > 0 &&
           sum(snapshot, "context", "credit_stalls") == sum(snapshot, "peer", "credit_stalls");
  }));

  const Folder roomy;
  Talk small(shown_in(roomy));
  REQUIRE(small.say(1000));
  CHECK(go_on_until(small.one, small.other, roomy, [](const Snapshot& snapshot) {
    return sum(snapshot, "context", "messages_sent") == 1 &&
           sum(snapshot, "context", "credit_stalls") == 0;
  }));
}

TEST_CASE("counters: a program that waits in its own loop shows when it is to call again",
          "[counters]") {
  const Folder folder;
  Talk talk(shown_in(folder));
  REQUIRE(talk.say(100));
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!talk.one.prepare_wait() && std::chrono::steady_clock::now() < end) {
  }
  bool seen = false;
  for (const auto& file : telemetry::snapshots_in(folder.path())) {
    const Snapshot snapshot = telemetry::read_snapshot(file);
    seen = seen || (snapshot.asleep && snapshot.wakes_at > snapshot.heartbeat);
  }
  CHECK(seen);
}

TEST_CASE("counters: they go with their context, and can be switched off", "[counters]") {
  const Folder folder;
  {
    const Context context(shown_in(folder));
    CHECK(telemetry::snapshots_in(folder.path()).size() == 1);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  Config off = shown_in(folder);
  off.counters = "0";
  const Context context(off);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("counters: a context works where they cannot be shown", "[counters]") {
  const Folder folder;
  Config config = shown_in(folder);
  config.counters = (folder.path() / "no" / "where").string();
  Talk talk(config);
  CHECK(talk.say(100));
}

}  // namespace pullman::test
