#include "world/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/version.h"
#include "world/fields.h"
#include "world/names.h"

namespace pullman::world {
namespace {

constexpr std::uint8_t kCountersVersion = 1;

const telemetry::Table& context_table() {
  return telemetry::tables().front();
}

bool is_counted(const telemetry::Column& column) {
  return column.bytes == sizeof(std::uint64_t) &&
         (column.kind == telemetry::Kind::kCounter || column.name.starts_with("max_"));
}

// Tells lists of counters of different versions apart (FNV-1a).
std::uint32_t mark_of_names() {
  std::uint32_t mark = 2166136261;
  for (const std::string_view name : counter_names()) {
    for (const char letter : name) {
      mark = (mark ^ static_cast<unsigned char>(letter)) * 16777619;
    }
    mark = (mark ^ '\n') * 16777619;
  }
  return mark;
}

// One counter over all ranks.
struct Spread {
  std::string_view name;
  std::uint64_t least = 0;
  unsigned least_rank = 0;
  std::uint64_t median = 0;
  std::uint64_t max = 0;
  unsigned max_rank = 0;
  std::uint64_t sum = 0;
};

// Of equals the lowest rank is named. The median of an even number is the lower one.
Spread spread_of(std::size_t index, const AllCounters& all) {
  std::vector<std::pair<std::uint64_t, unsigned>> values;
  Spread out{.name = counter_names()[index]};
  for (const auto& [rank, counters] : all) {
    values.emplace_back(counters[index], rank);
    out.sum += counters[index];
  }
  std::sort(values.begin(), values.end());
  out.least = values.front().first;
  out.least_rank = values.front().second;
  out.median = values[(values.size() - 1) / 2].first;
  out.max = values.back().first;
  out.max_rank = std::lower_bound(values.begin(), values.end(), std::pair(out.max, 0U))->second;
  return out;
}

std::vector<Spread> spreads_of(const AllCounters& all) {
  std::vector<Spread> out;
  for (std::size_t i = 0; i < counter_names().size() && !all.empty(); ++i) {
    const Spread spread = spread_of(i, all);
    if (spread.max != 0) out.push_back(spread);
  }
  return out;
}

std::vector<unsigned> missing_of(const Page& page) {
  std::vector<unsigned> missing;
  for (unsigned rank = 0; rank < page.size; ++rank) {
    if (!page.counters.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

// A sum of high-water marks says nothing.
bool has_sum(std::string_view name) {
  return !name.starts_with("max_");
}

std::string sum_of(const Spread& one, const char* none) {
  return has_sum(one.name) ? std::to_string(one.sum) : none;
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

const std::vector<std::string_view>& counter_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> found;
    for (const telemetry::Column& column : context_table().columns) {
      if (is_counted(column)) found.push_back(column.name);
    }
    return found;
  }();
  return names;
}

Counters counters_of(const telemetry::Rows& rows) {
  Counters out;
  const auto* const row = reinterpret_cast<const std::byte*>(&rows.context);
  for (const telemetry::Column& column : context_table().columns) {
    if (is_counted(column)) {
      std::memcpy(&out.emplace_back(), row + column.offset, sizeof(std::uint64_t));
    }
  }
  return out;
}

Bytes encode(const AllCounters& counters) {
  FieldWriter out;
  out.byte(kCountersVersion);
  out.number(mark_of_names());
  for (const auto& [rank, values] : counters) {
    out.number(rank);
    for (const std::uint64_t value : values) out.long_number(value);
  }
  return out.take();
}

bool decode(std::span<const std::byte> letter, unsigned size, AllCounters& out) {
  FieldReader in(letter);
  if (in.byte() != kCountersVersion || in.number() != mark_of_names()) return false;
  AllCounters found;
  while (!in.failed() && !in.is_at_end()) {
    const std::uint32_t rank = in.number();
    Counters values;
    for (std::size_t i = 0; i < counter_names().size(); ++i) values.push_back(in.long_number());
    if (rank >= size || in.failed()) return false;
    found[rank] = std::move(values);
  }
  out.merge(found);
  return !in.failed();
}

std::string to_table(const Page& page) {
  std::string out = fmt::format("Pullman {}: {} ranks, {:.1f} s", kLibraryVersion, page.size,
                                seconds(page.duration));
  if (const auto missing = missing_of(page); !missing.empty()) {
    out +=
        fmt::format("; without {}: gone, or not at an end within the patience", names_of(missing));
  }
  out += '\n';
  out += fmt::format("  {:<26}{:>16}{:>7}{:>16}{:>16}{:>7}{:>18}\n", "counter", "minimum", "rank",
                     "median", "maximum", "rank", "sum");
  for (const Spread& one : spreads_of(page.counters)) {
    out += fmt::format("  {:<26}{:>16}{:>7}{:>16}{:>16}{:>7}{:>18}\n", one.name, one.least,
                       one.least_rank, one.median, one.max, one.max_rank, sum_of(one, "-"));
  }
  return out;
}

// Names are words, and the rest is numbers: nothing has to be escaped.
std::string to_json(const Page& page) {
  std::string counters;
  for (const Spread& one : spreads_of(page.counters)) {
    counters += fmt::format(
        "{}\n    \"{}\": {{\"minimum\": {}, \"minimum_rank\": {}, \"median\": {}, \"maximum\": {}, "
        "\"maximum_rank\": {}, \"sum\": {}}}",
        counters.empty() ? "" : ",", one.name, one.least, one.least_rank, one.median, one.max,
        one.max_rank, sum_of(one, "null"));
  }
  std::string missing;
  for (const unsigned rank : missing_of(page)) {
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  return fmt::format(
      "{{\n  \"version\": \"{}\",\n  \"size\": {},\n  \"seconds\": {:.3f},\n"
      "  \"missing\": [{}],\n  \"counters\": {{{}\n  }}\n}}\n",
      kLibraryVersion, page.size, seconds(page.duration), missing, counters);
}

}  // namespace pullman::world
