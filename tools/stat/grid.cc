#include "stat/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "stat/report.h"

namespace stat_program {
namespace {

using pullman::telemetry::SnapshotColumn;
using pullman::telemetry::SnapshotTable;
using pullman::telemetry::Value;

struct Chosen {
  std::string_view table;
  std::vector<std::string_view> columns;
};

// What is worth a place on a screen; of other tables all is shown.
const std::array<Chosen, 4> kChosen{{
    {"context",
     {"messages_sent", "messages_received", "bytes_sent", "bytes_received", "packets_sent",
      "packets_received", "retransmits", "spurious_retransmits", "dropped_packets", "rtt",
      "peers_waiting"}},
    {"peer",
     {"peer", "address", "phase", "waits_for", "waits_since", "heard_at", "queued_packets",
      "unfinished_sends", "filling_receives", "unexpected_bytes"}},
    {"rail",
     {"peer", "rail", "nic", "remote", "state", "rtt_least", "rtt", "window", "in_flight",
      "packets_sent", "packets_received", "lost", "spurious", "timeouts", "times_left"}},
    {"error", {"times", "last", "text"}},
}};

bool is_shown(const std::string& table, const SnapshotColumn& column) {
  if (column.kind == "histogram") return false;
  const auto at = std::find_if(kChosen.begin(), kChosen.end(),
                               [&](const Chosen& one) { return one.table == table; });
  return at == kChosen.end() ||
         std::find(at->columns.begin(), at->columns.end(), column.name) != at->columns.end();
}

bool same_thing(const SnapshotTable& table, const std::vector<Value>& one,
                const std::vector<Value>& other) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].kind == "label" && one[i] != other[i]) return false;
  }
  return true;
}

const std::vector<Value>* find_before(const std::vector<Shown>& before, const Shown& shown,
                                      const SnapshotTable& table, const std::vector<Value>& row) {
  for (const Shown& old : before) {
    if (old.snapshot.path != shown.snapshot.path) continue;
    for (const auto& one : old.snapshot.table(table.name).rows) {
      if (one.size() == row.size() && same_thing(table, one, row)) return &one;
    }
  }
  return nullptr;
}

GridCell cell_of(const Value& value, const Value* before, double seconds,
                 const SnapshotColumn& column, std::uint64_t at) {
  const auto* number = std::get_if<std::uint64_t>(&value);
  if (number == nullptr) return {.text = to_text(value, column, at)};
  if (column.kind != "counter") {
    // The oldest is first where times are sorted downwards.
    const double order = column.kind == "time" ? age(*number, at) : static_cast<double>(*number);
    return {.text = to_text(value, column, at), .order = order, .is_number = true};
  }
  if (before == nullptr || seconds <= 0) return {.text = "-", .is_number = true};
  const auto* earlier = std::get_if<std::uint64_t>(before);
  const std::uint64_t old = earlier == nullptr ? *number : *earlier;
  const double rate = *number < old ? 0 : static_cast<double>(*number - old) / seconds;
  return {.text = fmt::format("{:.0f}", rate), .order = rate, .is_number = true};
}

void sort(Grid& grid, const GridQuestion& question) {
  if (question.sort >= grid.names.size()) return;
  std::stable_sort(grid.rows.begin(), grid.rows.end(), [&](const auto& a, const auto& b) {
    const GridCell& one = question.descending ? b[question.sort] : a[question.sort];
    const GridCell& other = question.descending ? a[question.sort] : b[question.sort];
    return one.is_number ? one.order < other.order : one.text < other.text;
  });
}

}  // namespace

std::vector<std::string> table_names(const std::vector<Shown>& all) {
  std::vector<std::string> out;
  for (const Shown& shown : all) {
    for (const SnapshotTable& table : shown.snapshot.tables) {
      if (std::find(out.begin(), out.end(), table.name) == out.end()) out.push_back(table.name);
    }
  }
  return out;
}

Grid make_grid(const std::vector<Shown>& all, const std::vector<Shown>& before, double seconds,
               const GridQuestion& question, std::uint64_t at) {
  Grid out;
  for (const Shown& shown : all) {
    const SnapshotTable& table = shown.snapshot.table(question.table);
    if (out.names.empty() && !table.columns.empty()) {
      out.names = {"process", "rank"};
      for (const SnapshotColumn& column : table.columns) {
        if (!is_shown(table.name, column)) continue;
        out.names.push_back(column.name + (column.kind == "counter" ? "/s" : ""));
      }
    }
    for (const auto& row : table.rows) {
      const std::vector<Value>* old = find_before(before, shown, table, row);
      std::vector<GridCell> cells{
          {.text = std::to_string(shown.snapshot.process.id),
           .order = static_cast<double>(shown.snapshot.process.id),
           .is_number = true},
          {.text = shown.rank, .order = std::atof(shown.rank.c_str()), .is_number = true}};
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (!is_shown(table.name, table.columns[i])) continue;
        cells.push_back(
            cell_of(row[i], old == nullptr ? nullptr : &(*old)[i], seconds, table.columns[i], at));
      }
      const bool matches = std::any_of(cells.begin(), cells.end(), [&](const GridCell& cell) {
        return cell.text.find(question.filter) != std::string::npos;
      });
      if (matches && cells.size() == out.names.size()) out.rows.push_back(std::move(cells));
    }
  }
  sort(out, question);
  return out;
}

}  // namespace stat_program
