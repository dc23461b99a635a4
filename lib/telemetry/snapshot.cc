#include "telemetry/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <system_error>
#include <thread>

#include "shm/owned_file.h"
#include "telemetry/door.h"
#include "telemetry/file.h"

namespace pullman::telemetry {
namespace {

namespace fs = std::filesystem;

// Of the first version of the library that had such files.
constexpr std::size_t kLeastHeader = offsetof(FileHeader, wakes_at);
constexpr int kTries = 200;
constexpr std::chrono::microseconds kPause{100};

struct Place {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct Layout {
  std::size_t row_bytes = 0;
  std::vector<Place> places;
};

std::size_t read_number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw SnapshotError(fmt::format("'{}' in the schema is no number", text));
  }
  return value;
}

// A context writes at most 64 MiB (file.cc); a later version may write more.
constexpr std::size_t kMaxFileBytes = 256 << 20;

// A copy of the file in which nothing is half written.
std::vector<std::byte> stable_copy(const fs::path& path) {
  for (int i = 0; i < kTries; ++i) {
    const shm::MappedFile file(path, shm::MappedFile::Access::kRead);
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.size() < kLeastHeader) throw SnapshotError("it is shorter than its header");
    if (bytes.size() > kMaxFileBytes) throw SnapshotError("it is larger than any file of counters");
    const auto* header = reinterpret_cast<const FileHeader*>(bytes.data());
    if (std::memcmp(header->magic, FileHeader::kMagic, sizeof header->magic) == 0) {
      std::atomic_thread_fence(std::memory_order_acquire);
      const std::uint64_t before = header->sequence.load(std::memory_order_acquire);
      std::vector<std::byte> copy(bytes.begin(), bytes.end());
      std::atomic_thread_fence(std::memory_order_acquire);
      const bool same = header->sequence.load(std::memory_order_relaxed) == before;
      if (same && before % 2 == 0) return copy;
    }
    std::this_thread::sleep_for(kPause);
  }
  throw SnapshotError("it is being written, or is no file of counters");
}

std::span<const std::byte> part(std::span<const std::byte> bytes, std::size_t at,
                                std::size_t length) {
  if (at > bytes.size() || length > bytes.size() - at) {
    throw SnapshotError("it ends before what it describes");
  }
  return bytes.subspan(at, length);
}

template <typename T>
T read(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, part(bytes, at, sizeof value).data(), sizeof value);
  return value;
}

std::vector<std::string> split(std::string_view text, const char* at) {
  std::vector<std::string> out;
  boost::algorithm::split(out, text, boost::algorithm::is_any_of(at));
  return out;
}

// Returns the kind, which says of what type a value is, whatever the file says.
std::string kind_of(const std::string& told, std::size_t bytes) {
  const bool number = bytes == sizeof(std::uint64_t);
  if (told == name(Kind::kHistogram)) {
    if (bytes % sizeof(std::uint64_t) != 0 || bytes < 24 || bytes > 512) {
      throw SnapshotError("a histogram has too few counters, or too many");
    }
    return told;
  }
  const bool of_numbers =
      told == name(Kind::kCounter) || told == name(Kind::kGauge) || told == name(Kind::kTime);
  if (of_numbers != number && told != name(Kind::kLabel)) {
    return std::string(name(number ? Kind::kGauge : Kind::kText));
  }
  return told;
}

// Reads the schema; a later version may have more fields in a line.
std::vector<Layout> read_schema(std::string_view text, Snapshot& out) {
  std::vector<Layout> layouts;
  for (const std::string& line : split(text, "\n")) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = split(line, "\t");
    if (fields.size() >= 3 && fields[0] == "table") {
      out.tables.push_back({.name = fields[1], .columns = {}, .rows = {}});
      layouts.push_back({.row_bytes = read_number(fields[2]), .places = {}});
    } else if (fields.size() >= 6 && !layouts.empty()) {
      const Place place{read_number(fields[3]), read_number(fields[4])};
      if (place.offset > layouts.back().row_bytes ||
          place.bytes > layouts.back().row_bytes - place.offset) {
        throw SnapshotError(fmt::format("column {} lies outside its row", fields[0]));
      }
      out.tables.back().columns.push_back({.name = fields[0],
                                           .kind = kind_of(fields[1], place.bytes),
                                           .unit = fields[2],
                                           .help = fields[5]});
      layouts.back().places.push_back(place);
    } else {
      throw SnapshotError(fmt::format("'{}' describes neither a table nor a column", line));
    }
  }
  return layouts;
}

Value read_value(std::span<const std::byte> field, bool is_histogram) {
  if (is_histogram) {
    Histogram out(field.size() / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = read<std::uint64_t>(field, 8 * i);
    return out;
  }
  if (field.size() == sizeof(std::uint64_t)) return read<std::uint64_t>(field, 0);
  std::string text(reinterpret_cast<const char*>(field.data()), field.size());
  text.resize(std::min(text.find('\0'), text.size()));
  return printable(std::move(text));
}

void read_rows(std::span<const std::byte> bytes, const TableEntry& entry, const Layout& layout,
               SnapshotTable& out) {
  out.left_out = entry.left_out;
  if (layout.row_bytes == 0) throw SnapshotError(fmt::format("rows of {} have no bytes", out.name));
  if (entry.rows > bytes.size() / layout.row_bytes)
    throw SnapshotError("it has more rows than bytes");
  const auto rows = part(bytes, entry.rows_at, entry.rows * layout.row_bytes);
  for (std::size_t i = 0; i < entry.rows; ++i) {
    const auto row = rows.subspan(i * layout.row_bytes, layout.row_bytes);
    std::vector<Value>& values = out.rows.emplace_back();
    for (std::size_t k = 0; k < layout.places.size(); ++k) {
      const Place place = layout.places[k];
      values.push_back(read_value(row.subspan(place.offset, place.bytes),
                                  out.columns[k].kind == name(Kind::kHistogram)));
    }
  }
}

std::uint64_t sum(const SnapshotTable& table, std::string_view column) {
  std::uint64_t out = 0;
  for (const auto& row : table.rows) out += table.number(row, column);
  return out;
}

}  // namespace

std::optional<std::size_t> SnapshotTable::column(std::string_view wanted) const {
  const auto at = std::find_if(columns.begin(), columns.end(),
                               [&](const SnapshotColumn& one) { return one.name == wanted; });
  if (at == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(at - columns.begin());
}

std::uint64_t SnapshotTable::number(const std::vector<Value>& row, std::string_view wanted) const {
  const auto index = column(wanted);
  const auto* value = index ? std::get_if<std::uint64_t>(&row[*index]) : nullptr;
  return value == nullptr ? 0 : *value;
}

std::string SnapshotTable::text(const std::vector<Value>& row, std::string_view wanted) const {
  const auto index = column(wanted);
  const auto* value = index ? std::get_if<std::string>(&row[*index]) : nullptr;
  return value == nullptr ? "" : *value;
}

const SnapshotTable& Snapshot::table(std::string_view name) const {
  static const SnapshotTable kNone;
  const auto at = std::find_if(tables.begin(), tables.end(),
                               [&](const SnapshotTable& one) { return one.name == name; });
  return at == tables.end() ? kNone : *at;
}

Snapshot read_snapshot(const fs::path& path) {
  Snapshot out;
  out.path = path;
  out.process = shm::owner_of(path.filename().string()).value_or(shm::ProcessName{});
  const std::vector<std::byte> bytes = stable_copy(path);
  const auto* header = reinterpret_cast<const FileHeader*>(bytes.data());
  if (header->version != FileHeader::kVersion) {
    throw SnapshotError(
        fmt::format("it is of version {}, which is not known here: use the tools "
                    "of the library that wrote it",
                    header->version));
  }
  const std::uint64_t heartbeat = header->heartbeat.load(std::memory_order_relaxed);
  out.heartbeat = heartbeat & ~File::kAsleep;
  out.asleep = (heartbeat & File::kAsleep) != 0;
  if (out.asleep && header->header_bytes >= sizeof(FileHeader)) {
    out.wakes_at = read<std::uint64_t>(bytes, offsetof(FileHeader, wakes_at));
  }
  out.written_at = header->written_at;
  const auto schema = part(bytes, header->header_bytes, header->schema_bytes);
  const std::vector<Layout> layouts =
      read_schema({reinterpret_cast<const char*>(schema.data()), schema.size()}, out);
  if (layouts.size() != header->tables) throw SnapshotError("its schema has other tables");
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const auto entry = read<TableEntry>(bytes, header->entries_at + i * sizeof(TableEntry));
    read_rows(bytes, entry, layouts[i], out.tables[i]);
  }
  return out;
}

std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7F; }, '?');
  return text;
}

std::vector<fs::path> snapshots_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const auto owner = shm::owner_of(entry.path().filename().string());
    const bool is_door = entry.path().extension() == kDoorExtension;
    if (owner && !is_door && !shm::has_ended(*owner)) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> wrong_sums(const Snapshot& snapshot) {
  std::vector<std::string> out;
  const SnapshotTable& context = snapshot.table("context");
  if (context.rows.empty()) return {};  // nothing was written yet
  const std::vector<Value>& row = context.rows.front();
  const auto check = [&](std::string_view column, std::string_view of, std::uint64_t total) {
    if (context.number(row, column) == total) return;
    out.push_back(fmt::format("{} is {}, {} {}", column, context.number(row, column), of, total));
  };
  std::uint64_t dropped = 0;
  for (const SnapshotColumn& column : context.columns) {
    if (column.name.starts_with("dropped_") && column.name != "dropped_packets") {
      dropped += context.number(row, column.name);
    }
  }
  check("dropped_packets", "its reasons are", dropped);
  const SnapshotTable& channels = snapshot.table("channel");
  check("nic_send_errors", "those of channels are", sum(channels, "send_errors"));
  check("nic_receive_overflows", "those of channels are", sum(channels, "receive_overflows"));
  const SnapshotTable& rails = snapshot.table("rail");
  const SnapshotTable& peers = snapshot.table("peer");
  if (rails.left_out == 0 && peers.left_out == 0) {
    check("packets_in_flight", "those of rails are", sum(rails, "in_flight"));
    check("peers", "there are", peers.rows.size());
    check("unexpected_bytes", "those of peers are", sum(peers, "unexpected_bytes"));
  }
  return out;
}

}  // namespace pullman::telemetry
