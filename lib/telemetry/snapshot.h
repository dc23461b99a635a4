// Reads the files in which contexts show their counters (file.h), of this version or a later one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shm/process.h"

namespace pullman::telemetry {

// A file is not what it should be; what() says why.
class SnapshotError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Histogram = std::vector<std::uint64_t>;
using Value = std::variant<std::uint64_t, std::string, Histogram>;

struct SnapshotColumn {
  std::string name;
  std::string kind;  // telemetry::name(Kind), or one that is not known here
  std::string unit;
  std::string help;
};

struct SnapshotTable {
  std::string name;
  std::vector<SnapshotColumn> columns;
  std::vector<std::vector<Value>> rows;
  std::uint64_t left_out = 0;  // rows for which there was no room

  // Returns the index of the column, or nothing.
  std::optional<std::size_t> column(std::string_view name) const;
  // Return a value of a row; 0, or an empty text, if there is no such column.
  std::uint64_t number(const std::vector<Value>& row, std::string_view name) const;
  std::string text(const std::vector<Value>& row, std::string_view name) const;
};

struct Snapshot {
  std::filesystem::path path;
  shm::ProcessName process;     // 0: a process that cannot be seen from here
  std::uint64_t heartbeat = 0;  // when it last made a turn (CLOCK_MONOTONIC, ns)
  bool asleep = false;          // since then, until there is something to do
  std::uint64_t wakes_at = 0;   // if asleep: or until this time; 0: never, or not known
  std::uint64_t written_at = 0;
  std::vector<SnapshotTable> tables;

  // Returns the table; an empty one if there is none.
  const SnapshotTable& table(std::string_view name) const;
};

// Throws SnapshotError, and shm::MemoryError.
Snapshot read_snapshot(const std::filesystem::path& path);

// Returns the files in the folder whose processes live, as far as this process sees them.
std::vector<std::filesystem::path> snapshots_in(const std::filesystem::path& folder);

// Returns the text with ? for all that is not printable ASCII. It may have come over the network,
// or be cut within a character, and is shown on terminals and read by others.
std::string printable(std::string text);

// Returns a sentence for each sum in the snapshot that does not hold.
std::vector<std::string> wrong_sums(const Snapshot& snapshot);

}  // namespace pullman::telemetry
