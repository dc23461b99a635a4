// The file in which a context shows its counters to other processes of the same user.
//
// It describes itself, so that a later reader can read it, too (Aeron's counters are the model):
//
//   FileHeader
//   the schema: a text, for each table a line `table NAME ROW_BYTES` and for each of its columns a
//     line `NAME KIND UNIT OFFSET BYTES HELP`, fields apart by tabs
//   TableEntry for each table, in the schema's order
//   the rows of the first table, of the second, ...
//
// A reader takes a whole copy and believes it if `sequence` was even, and the same before and
// after. All numbers are the host's own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/time.h"
#include "shm/owned_file.h"
#include "telemetry/rows.h"

namespace pullman::telemetry {

struct FileHeader {
  static constexpr char kMagic[8] = "PULLMAN";
  static constexpr std::uint32_t kVersion = 1;

  char magic[8] = {};
  std::uint32_t version = 0;       // of this header and of TableEntry; the schema says the rest
  std::uint32_t header_bytes = 0;  // the schema begins there
  std::atomic<std::uint64_t> sequence = 0;  // odd: rows are being written
  // When the context last made a turn (CLOCK_MONOTONIC, ns); the lowest bit is 1 if it sleeps since
  // then until there is something to do.
  std::atomic<std::uint64_t> heartbeat = 0;
  std::uint64_t written_at = 0;  // when the rows were
  std::uint64_t schema_bytes = 0;
  std::uint64_t entries_at = 0;  // the table entries, from the file's beginning
  std::uint64_t tables = 0;
  std::uint64_t used_bytes = 0;  // the rows end there
  // When a context that sleeps is to make its next turn even if nothing comes; 0: never. Older
  // files end before.
  std::atomic<std::uint64_t> wakes_at = 0;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct TableEntry {
  std::uint64_t rows_at = 0;
  std::uint64_t rows = 0;
  std::uint64_t left_out = 0;  // rows for which there was no room
};

// Returns where the files of this user's contexts are: /dev/shm/pullman.UID.
std::filesystem::path default_folder();

class File {
 public:
  // Creates the file, and before that the folder, if it is not there. Removes files that processes
  // of this user have left there. Throws shm::MemoryError.
  explicit File(const std::filesystem::path& folder);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return file_.path(); }

  // Both cost an instruction or two, and may be called in every turn.
  void note_turn(Instant now) {
    header().heartbeat.store(clock_count(now) & ~kAsleep, std::memory_order_relaxed);
  }
  // `until` is when the program makes its next turn at the latest; kNever: nothing is due.
  void note_sleep(Instant now, Instant until) {
    header().wakes_at.store(clock_count(until), std::memory_order_relaxed);
    header().heartbeat.store(clock_count(now) | kAsleep, std::memory_order_release);
  }
  static constexpr std::uint64_t kAsleep = 1;

  // Writes the rows. If there is no room for all, the file gets longer; if it cannot, what is last
  // is left out, and that is told.
  void write(Instant now, const Rows& rows);

 private:
  FileHeader& header() const { return *reinterpret_cast<FileHeader*>(file_.bytes().data()); }
  File(const std::filesystem::path& folder, const std::string& schema);
  void reserve(std::size_t bytes);

  std::size_t rows_at_;
  shm::OwnedFile file_;
};

}  // namespace pullman::telemetry
