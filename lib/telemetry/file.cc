#include "telemetry/file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <system_error>

namespace pullman::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFirstBytes = 16 << 10;
constexpr std::size_t kMaxBytes = 64 << 20;

std::atomic<unsigned> files_here = 0;  // of this process

std::string make_schema() {
  std::string out;
  for (const Table& table : tables()) {
    out += fmt::format("table\t{}\t{}\n", table.name, table.row_bytes);
    for (const Column& column : table.columns) {
      out += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", column.name, name(column.kind), column.unit,
                         column.offset, column.bytes, column.help);
    }
  }
  return out;
}

std::size_t entries_after(const std::string& schema) {
  return (sizeof(FileHeader) + schema.size() + 63) / 64 * 64;
}

// Others must not be able to put files in the place of ours.
fs::path own_folder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw shm::MemoryError(fmt::format("{} cannot be made: {}", folder.string(),
                                       std::generic_category().message(errno)));
  }
  struct stat facts {};
  if (lstat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() ||
      (facts.st_mode & 022) != 0) {
    throw shm::MemoryError(fmt::format(
        "{} is no folder of this user's that nobody else may write to", folder.string()));
  }
  // A process of a thousand contexts would look a thousand times for what others have left.
  if (files_here == 0) shm::sweep(folder);
  return folder;
}

template <typename Row>
std::span<const std::byte> bytes_of(const std::vector<Row>& rows) {
  return std::as_bytes(std::span(rows));
}

}  // namespace

fs::path default_folder() {
  return fs::path(shm::kFolder) / fmt::format("pullman.{}", geteuid());
}

File::File(const fs::path& folder) : File(folder, make_schema()) {}

File::File(const fs::path& folder, const std::string& schema)
    : rows_at_(entries_after(schema) + tables().size() * sizeof(TableEntry)),
      file_(shm::OwnedFile::create(std::max(kFirstBytes, rows_at_), own_folder(folder))) {
  ++files_here;
  const std::size_t entries_at = entries_after(schema);
  auto* header = new (file_.bytes().data()) FileHeader;
  header->version = FileHeader::kVersion;
  header->header_bytes = sizeof(FileHeader);
  header->schema_bytes = schema.size();
  header->entries_at = entries_at;
  header->tables = tables().size();
  header->used_bytes = rows_at_;
  std::copy(schema.begin(), schema.end(),
            reinterpret_cast<char*>(file_.bytes().data()) + sizeof(FileHeader));
  // It is what tells readers that the rest is there.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header->magic, FileHeader::kMagic, sizeof header->magic);
}

File::~File() {
  --files_here;
}

void File::reserve(std::size_t bytes) {
  const std::size_t has = file_.bytes().size();
  if (bytes <= has || has >= kMaxBytes) return;
  try {
    file_.grow(std::min(std::max(bytes, 2 * has), kMaxBytes));
  } catch (const shm::MemoryError&) {
    // There may be room when rows are written next.
  }
}

void File::write(Instant now, const Rows& rows) {
  const std::array<std::span<const std::byte>, 6> all{std::as_bytes(std::span(&rows.context, 1)),
                                                      bytes_of(rows.nics),
                                                      bytes_of(rows.channels),
                                                      bytes_of(rows.peers),
                                                      bytes_of(rows.rails),
                                                      bytes_of(rows.errors)};
  std::size_t whole = rows_at_;
  for (const auto& table : all) whole += table.size();
  reserve(whole);

  FileHeader& to = header();
  const std::uint64_t sequence = to.sequence.load(std::memory_order_relaxed);
  to.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  auto* entries = reinterpret_cast<TableEntry*>(file_.bytes().data() + to.entries_at);
  std::size_t at = rows_at_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t row = tables()[i].row_bytes;
    const std::size_t count = all[i].size() / row;
    const std::size_t fit = std::min(count, (file_.bytes().size() - at) / row);
    std::memcpy(file_.bytes().data() + at, all[i].data(), fit * row);
    entries[i] = {.rows_at = at, .rows = fit, .left_out = count - fit};
    at += fit * row;
  }
  to.used_bytes = at;
  to.written_at = clock_count(now);
  to.sequence.store(sequence + 2, std::memory_order_release);
}

}  // namespace pullman::telemetry
