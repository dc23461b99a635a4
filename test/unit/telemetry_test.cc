// telemetry/: what a context shows is read as it was written, by readers that know nothing of it.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include "shared_folder.h"
#include "telemetry/file.h"
#include "telemetry/snapshot.h"

namespace pullman::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr Instant kNow{std::chrono::seconds(100)};

struct Folder : shm::SharedFolder {
  Folder() { fs::permissions(path(), fs::perms::owner_all); }
};

Rows some_rows() {
  Rows rows;
  rows.context.process = 17;
  rows.context.address = {"10.0.0.1:7100"};
  rows.context.stats.packets_sent = 12;
  rows.context.stats.dropped_by_reason[4] = 3;
  rows.context.stats.dropped_packets = 3;
  rows.context.rtt[2] = 5;
  rows.context.peers = 2;
  rows.peers = {{.peer = 0, .waits_for = {"ACKs"}}, {.peer = 1, .unexpected_bytes = 9}};
  rows.context.stats.unexpected_bytes = 9;
  rows.rails.push_back({.peer = 1, .nic = {"eth0"}, .in_flight = 2, .lost = 4});
  rows.context.stats.packets_in_flight = 2;
  rows.errors.push_back({.kind = {"send errors"}, .times = 7, .text = {"why\x1b[2J"}});
  return rows;
}

// Of those that are drops: kAccepted and kDuplicate are not.
std::size_t rows_of_reasons() {
  return std::tuple_size_v<decltype(Stats::dropped_by_reason)> - 2;
}

// Writes a file as it is to be, and then something else into it.
fs::path write_bytes(const fs::path& folder, const std::vector<char>& bytes) {
  const fs::path path = folder / "pullman.1.1.1.0000000000000001";
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
  return path;
}

std::vector<char> bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::ptrdiff_t schema_bytes(const std::vector<char>& file) {
  std::uint64_t out = 0;
  std::memcpy(&out, file.data() + offsetof(FileHeader, schema_bytes), sizeof out);
  return static_cast<std::ptrdiff_t>(out);
}

}  // namespace

TEST_CASE("what is written is read, with names, kinds and units") {
  const Folder folder;
  File file(folder.path());
  file.note_turn(kNow);
  file.write(kNow, some_rows());

  const Snapshot snapshot = read_snapshot(file.path());

  CHECK(snapshot.heartbeat == clock_count(kNow));
  CHECK_FALSE(snapshot.asleep);
  CHECK(snapshot.process.id == getpid());
  const SnapshotTable& context = snapshot.table("context");
  REQUIRE(context.rows.size() == 1);
  const auto& row = context.rows.front();
  CHECK(context.number(row, "packets_sent") == 12);
  CHECK(context.number(row, "dropped_bad_type") == 3);
  CHECK(context.text(row, "address") == "10.0.0.1:7100");
  CHECK(context.columns[*context.column("packets_sent")].kind == "counter");
  CHECK(context.columns[*context.column("rtt")].unit == "ns");
  CHECK(std::get<Histogram>(row[*context.column("rtt_histogram")])[2] == 5);
  std::size_t reasons = 0;
  for (const SnapshotColumn& column : context.columns) {
    reasons += column.name.starts_with("dropped_") && column.name != "dropped_packets";
  }
  CHECK(reasons == rows_of_reasons());
  const SnapshotTable& peers = snapshot.table("peer");
  REQUIRE(peers.rows.size() == 2);
  CHECK(peers.text(peers.rows[0], "waits_for") == "ACKs");
  CHECK(snapshot.table("rail").number(snapshot.table("rail").rows[0], "lost") == 4);
  CHECK(wrong_sums(snapshot).empty());
}

TEST_CASE("no column lies outside its row, or over another") {
  for (const Table& table : tables()) {
    std::vector<bool> used(table.row_bytes);
    for (const Column& column : table.columns) {
      INFO(table.name << ": " << column.name);
      REQUIRE(column.offset + column.bytes <= table.row_bytes);
      for (std::size_t i = column.offset; i < column.offset + column.bytes; ++i) {
        REQUIRE_FALSE(used[i]);
        used[i] = true;
      }
    }
  }
}

TEST_CASE("a text from the network does nothing to a terminal") {
  const Folder folder;
  File file(folder.path());
  file.write(kNow, some_rows());
  const Snapshot snapshot = read_snapshot(file.path());
  const SnapshotTable& errors = snapshot.table("error");
  CHECK(errors.text(errors.rows.front(), "text") == "why?[2J");
}

TEST_CASE("a process that sleeps is told from one that does not go on") {
  const Folder folder;
  File file(folder.path());
  file.note_sleep(kNow, kNever);
  CHECK(read_snapshot(file.path()).asleep);
  CHECK(read_snapshot(file.path()).wakes_at == 0);
  file.note_turn(kNow);
  CHECK_FALSE(read_snapshot(file.path()).asleep);
}

TEST_CASE(
    "a process that sleeps shows when it is going to wake, and one that does not sleep none") {
  const Folder folder;
  File file(folder.path());
  const Instant until = kNow + std::chrono::seconds(3);
  file.note_sleep(kNow, until);
  CHECK(read_snapshot(file.path()).wakes_at == clock_count(until));
  file.note_turn(until);
  CHECK(read_snapshot(file.path()).wakes_at == 0);
}

TEST_CASE("a file without the time of waking is read, and shows none") {
  const Folder folder;
  std::vector<char> bytes;
  {
    File file(folder.path());
    file.write(kNow, some_rows());
    file.note_sleep(kNow, kNow);
    bytes = bytes_of(file.path());
  }
  // The header of the first version ends there; its schema may begin behind a gap.
  constexpr std::uint32_t kBefore = offsetof(FileHeader, wakes_at);
  std::vector<char> older(bytes.begin(), bytes.begin() + kBefore);
  older.insert(older.end(), bytes.begin() + sizeof(FileHeader), bytes.end());
  std::memcpy(older.data() + offsetof(FileHeader, header_bytes), &kBefore, sizeof kBefore);
  older.insert(older.begin() + kBefore + schema_bytes(bytes), sizeof(FileHeader) - kBefore, 0);

  const Snapshot snapshot = read_snapshot(write_bytes(folder.path(), older));

  CHECK(snapshot.asleep);
  CHECK(snapshot.wakes_at == 0);
  CHECK(snapshot.table("peer").rows.size() == 2);
}

TEST_CASE("each sum that does not hold has a sentence") {
  const Folder folder;
  File file(folder.path());
  Rows rows = some_rows();
  rows.context.stats.dropped_packets = 4;
  rows.context.stats.packets_in_flight = 3;
  file.write(kNow, rows);
  const std::vector<std::string> wrong = wrong_sums(read_snapshot(file.path()));
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[0].starts_with("dropped_packets is 4"));
  CHECK(wrong[1].starts_with("packets_in_flight is 3"));
}

TEST_CASE("the file grows with its rows, and what has no room is counted") {
  const Folder folder;
  File file(folder.path());
  Rows rows = some_rows();
  rows.peers.resize(1);
  const auto [count, fits] =
      GENERATE(std::pair(std::size_t{5000}, true), std::pair(std::size_t{200'000}, false));
  rows.rails.resize(count);
  for (std::size_t i = 0; i < count; ++i) rows.rails[i].peer = i;
  file.write(kNow, rows);

  const Snapshot snapshot = read_snapshot(file.path());
  const SnapshotTable& rails = snapshot.table("rail");
  CHECK(rails.rows.size() + rails.left_out == count);
  CHECK((rails.left_out == 0) == fits);
  CHECK(rails.number(rails.rows.back(), "peer") == rails.rows.size() - 1);
}

TEST_CASE("what another process is writing is never read in part") {
  const Folder folder;
  File file(folder.path());
  Rows rows;
  rows.rails.resize(300);
  std::atomic<bool> ends = false;
  file.write(kNow, rows);
  std::thread writer([&] {
    for (std::uint64_t i = 1; !ends; ++i) {
      rows.context.process = i;
      for (RailRow& rail : rows.rails) rail.lost = i;
      file.write(kNow, rows);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  bool whole = true;
  for (int i = 0; i < 200; ++i) {
    const Snapshot snapshot = read_snapshot(file.path());
    const SnapshotTable& context = snapshot.table("context");
    const std::uint64_t expected = context.number(context.rows.front(), "process");
    const SnapshotTable& rails = snapshot.table("rail");
    for (const auto& row : rails.rows) whole = whole && rails.number(row, "lost") == expected;
  }
  ends = true;
  writer.join();
  CHECK(whole);
}

TEST_CASE("a later library's file is read: more tables, columns, kinds and fields") {
  const Folder folder;
  const std::string schema =
      "table\tcontext\t24\tnew field\npackets_sent\tcounter\t\t8\t8\tpackets\tnew field\n"
      "phase\tmood\t\t16\t8\t\ntable\tplanet\t8\nname\ttext\t\t0\t4\tof it\n";
  FileHeader header;
  std::memcpy(header.magic, FileHeader::kMagic, sizeof header.magic);
  header.version = 1;
  header.header_bytes = sizeof header + 16;  // it has grown
  header.schema_bytes = schema.size();
  header.entries_at = 512;
  header.tables = 2;
  std::vector<char> bytes(1024);
  std::memcpy(bytes.data(), static_cast<const void*>(&header), sizeof header);
  std::memcpy(bytes.data() + header.header_bytes, schema.data(), schema.size());
  const TableEntry entries[] = {{.rows_at = 600, .rows = 1}, {.rows_at = 624, .rows = 1}};
  std::memcpy(bytes.data() + 512, entries, sizeof entries);
  const std::uint64_t sent = 42;
  std::memcpy(bytes.data() + 608, &sent, sizeof sent);
  std::memcpy(bytes.data() + 624, "Mars", 4);

  const Snapshot snapshot = read_snapshot(write_bytes(folder.path(), bytes));

  const SnapshotTable& context = snapshot.table("context");
  CHECK(context.number(context.rows.front(), "packets_sent") == 42);
  CHECK(context.columns[1].kind == "gauge");  // a mood, of which only the size is known
  CHECK(snapshot.table("planet").text(snapshot.table("planet").rows.front(), "name") == "Mars");
}

TEST_CASE("whatever stands in a file, reading it ends with a snapshot or an error") {
  const Folder folder;
  std::vector<char> bytes;
  {
    File file(folder.path());
    file.write(kNow, some_rows());
    bytes = bytes_of(file.path());
  }
  const std::uint32_t seed = GENERATE(range(0u, 300u));
  std::mt19937 random(seed);
  // The header counts for most. With another magic or an odd sequence each reading would take its
  // patience.
  for (int i = 0; i < 4; ++i) {
    const std::size_t limit = random() % 2 == 0 ? sizeof(FileHeader) : bytes.size();
    std::size_t at = random() % limit;
    if (at - offsetof(FileHeader, sequence) < 8) at = offsetof(FileHeader, heartbeat);
    if (at < sizeof(FileHeader::magic)) at = offsetof(FileHeader, version);
    bytes[at] = static_cast<char>(random());
  }
  if (seed % 3 == 0) bytes.resize(sizeof(FileHeader) + random() % bytes.size());
  const fs::path path = write_bytes(folder.path(), bytes);
  try {
    read_snapshot(path);
  } catch (const SnapshotError&) {
  } catch (const shm::MemoryError&) {
  }
  SUCCEED();
}

TEST_CASE("the file goes with its context, and that of a process that died with the next one") {
  const Folder folder;
  {
    const File file(folder.path());
    CHECK(fs::exists(file.path()));
    CHECK(snapshots_in(folder.path()).size() == 1);
    struct stat facts {};
    REQUIRE(stat(file.path().c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0600);
  }
  CHECK(fs::is_empty(folder.path()));

  const pid_t child = fork();
  if (child == 0) {
    const File file(folder.path());
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(fs::is_empty(folder.path()));
  CHECK(snapshots_in(folder.path()).empty());
  const File next(folder.path());
  CHECK(snapshots_in(folder.path()).size() == 1);
}

TEST_CASE("a folder that others may write to, or that is none, is not used") {
  const Folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  CHECK_THROWS_AS(File(folder.path()), shm::MemoryError);
  fs::permissions(folder.path(), fs::perms::owner_all);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(File(folder.path() / "file"), shm::MemoryError);
  CHECK_THROWS_AS(File(folder.path() / "no" / "where"), shm::MemoryError);
  fs::create_directory_symlink(folder.path(), folder.path() / "link");
  CHECK_THROWS_AS(File(folder.path() / "link"), shm::MemoryError);
}

}  // namespace pullman::telemetry
