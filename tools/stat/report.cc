#include "stat/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace stat_program {
namespace {

using Json = nlohmann::ordered_json;
using pullman::telemetry::Histogram;
using pullman::telemetry::Snapshot;
using pullman::telemetry::SnapshotColumn;
using pullman::telemetry::SnapshotTable;
using pullman::telemetry::Value;

// Seconds. A process that makes no progress for longer is shown so: one that is to wake may wait
// for a processor.
constexpr double kLate = 1;

bool is_nothing(const Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number == 0;
  if (const auto* text = std::get_if<std::string>(&value)) return text->empty();
  const Histogram& counts = std::get<Histogram>(value);
  return std::all_of(counts.begin(), counts.end(), [](std::uint64_t count) { return count == 0; });
}

// "<8 us: 120, <16 us: 4" of a histogram whose classes double. The last value is the sum.
std::string text_of(const Histogram& counts) {
  std::string out;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const bool longest = i + 2 == counts.size();
    out += fmt::format("{}{}{} us: {}", out.empty() ? "" : ", ", longest ? ">" : "<",
                       std::uint64_t{1} << (longest ? i - 1 : i), counts[i]);
  }
  return out;
}

Json to_json(const Value& value, const SnapshotColumn& column, std::uint64_t at) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* counts = std::get_if<Histogram>(&value)) return *counts;
  const std::uint64_t number = std::get<std::uint64_t>(value);
  if (column.kind != "time") return number;
  return number == 0 ? Json() : Json(age(number, at));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// The samples of one metric, which have to stand together.
struct Metric {
  std::string type;
  std::string help;
  std::vector<std::string> samples;
};

class Metrics {
 public:
  void add(const std::string& name, const std::string& type, const std::string& help,
           const std::string& sample) {
    Metric& metric = metrics_[name];
    metric.type = type;
    metric.help = help;
    metric.samples.push_back(sample);
  }
  std::string text() const {
    std::string out;
    for (const auto& [name, metric] : metrics_) {
      out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, metric.help, name, metric.type);
      for (const std::string& sample : metric.samples) out += sample;
    }
    return out;
  }

 private:
  std::map<std::string, Metric> metrics_;
};

void add_histogram(Metrics& out, const std::string& name, const std::string& help,
                   const std::string& labels, const Histogram& counts) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
    total += counts[i];
    const std::string bound =
        i + 2 == counts.size()
            ? "+Inf"
            : fmt::format("{}", static_cast<double>(std::uint64_t{1} << i) / 1e6);
    out.add(name, "histogram", help,
            fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, total));
  }
  out.add(
      name, "histogram", help,
      fmt::format("{}_sum{{{}}} {:.9f}\n", name, labels, static_cast<double>(counts.back()) / 1e9));
  out.add(name, "histogram", help, fmt::format("{}_count{{{}}} {}\n", name, labels, total));
}

// A text is a label, and its value 1.
void add_text(Metrics& out, const std::string& name, const SnapshotColumn& column,
              const std::string& help, const std::string& labels, const std::string& text) {
  out.add(name, "gauge", help,
          fmt::format("{}{{{},{}=\"{}\"}} 1\n", name, labels, column.name, escaped(text)));
}

void add_number(Metrics& out, const std::string& name, const SnapshotColumn& column,
                const std::string& help, const std::string& labels, std::uint64_t number,
                std::uint64_t at) {
  const auto add = [&](const std::string& suffix, const char* type, const std::string& value) {
    out.add(name + suffix, type, help, fmt::format("{}{}{{{}}} {}\n", name, suffix, labels, value));
  };
  if (column.kind == "counter") {
    add("_total", "counter", std::to_string(number));
  } else if (column.kind == "time") {
    if (number != 0) add("_seconds_ago", "gauge", fmt::format("{:.6f}", age(number, at)));
  } else if (column.unit == "ns") {
    add("_seconds", "gauge", fmt::format("{:.9f}", static_cast<double>(number) / 1e9));
  } else {
    add("", "gauge", std::to_string(number));
  }
}

void add_value(Metrics& out, const std::string& table, const SnapshotColumn& column,
               const std::string& labels, const Value& value, std::uint64_t at) {
  if (column.kind == "label") return;
  const std::string name = fmt::format("pullman_{}_{}", table, column.name);
  const std::string help = column.help.empty() ? column.name : column.help;
  if (const auto* counts = std::get_if<Histogram>(&value)) {
    add_histogram(out, name + "_seconds", help, labels, *counts);
  } else if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    add_number(out, name, column, help, labels, *number, at);
  } else if (table != "error") {  // each text of one would be a metric of its own
    add_text(out, name, column, help, labels, std::get<std::string>(value));
  }
}

// Returns the labels of a row, behind those of its context.
std::string labels_of(const SnapshotTable& table, const std::vector<Value>& row,
                      const std::string& context) {
  std::string out = context;
  if (table.name == "context") return out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].kind != "label") continue;
    const auto* number = std::get_if<std::uint64_t>(&row[i]);
    out += fmt::format(
        ",{}=\"{}\"", table.columns[i].name,
        number != nullptr ? std::to_string(*number) : escaped(std::get<std::string>(row[i])));
  }
  return out;
}

}  // namespace

std::string to_text(const Value& value, const SnapshotColumn& column, std::uint64_t at) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* counts = std::get_if<Histogram>(&value)) return text_of(*counts);
  const std::uint64_t number = std::get<std::uint64_t>(value);
  if (column.kind == "time") return number == 0 ? "-" : fmt::format("{:.1f} s", age(number, at));
  if (column.unit == "ns") return fmt::format("{:.1f} us", static_cast<double>(number) / 1e3);
  if (column.name == "epoch") return fmt::format("{:016x}", number);
  return std::to_string(number);
}

double overdue(const Snapshot& snapshot, std::uint64_t at) {
  if (!snapshot.asleep) return 0;
  const double late = age(snapshot.wakes_at, at);
  return late < kLate ? 0 : late;
}

std::string summary(const Shown& shown, std::uint64_t at) {
  const Snapshot& snapshot = shown.snapshot;
  const SnapshotTable& context = snapshot.table("context");
  if (context.rows.empty()) return fmt::format("{}: nothing was written yet", shown.command);
  const std::vector<Value>& row = context.rows.front();
  std::string out = fmt::format(
      "process {} ({}{}{}) at {} by {}, {}: {} peers, ", context.number(row, "process"),
      shown.command, shown.rank.empty() ? "" : ", rank ", shown.rank, context.text(row, "address"),
      context.text(row, "driver"), context.text(row, "security"), context.number(row, "peers"));
  const double silent = age(snapshot.heartbeat, at);
  if (const double late = overdue(snapshot, at); late != 0) {
    out += fmt::format("overdue since {:.1f} s, has made no progress for {:.1f} s", late, silent);
  } else if (snapshot.asleep) {
    out += fmt::format("sleeps since {:.1f} s", silent);
  } else if (silent < kLate) {
    out += "makes progress";
  } else {
    out += fmt::format("has made no progress for {:.1f} s", silent);
  }
  if (const std::uint64_t waiting = context.number(row, "peers_waiting"); waiting != 0) {
    out += fmt::format(", waits for {}", waiting);
  }
  if (const std::uint64_t posted = context.number(row, "receives_posted"); posted != 0) {
    out += fmt::format(", {} receives posted", posted);
  }
  return out;
}

std::vector<std::string> lines_of(const SnapshotTable& table, const std::vector<std::string>& names,
                                  std::uint64_t at) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const bool named = std::find(names.begin(), names.end(), table.columns[i].name) != names.end();
    const bool some = std::any_of(table.rows.begin(), table.rows.end(),
                                  [i](const auto& row) { return !is_nothing(row[i]); });
    if (named || (names.empty() && (some || table.columns[i].kind == "label"))) chosen.push_back(i);
  }
  std::vector<std::vector<std::string>> cells(1);
  for (const std::size_t i : chosen) cells[0].push_back(table.columns[i].name);
  for (const auto& row : table.rows) {
    std::vector<std::string>& line = cells.emplace_back();
    for (const std::size_t i : chosen) line.push_back(to_text(row[i], table.columns[i], at));
  }
  std::vector<std::string> out(cells.size());
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    std::size_t width = 0;
    for (const auto& line : cells) width = std::max(width, line[k].size());
    const bool is_text =
        table.columns[chosen[k]].kind == "text" ||
        (!table.rows.empty() && std::holds_alternative<std::string>(table.rows.front()[chosen[k]]));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out[i] += is_text ? fmt::format("{:<{}}  ", cells[i][k], width)
                        : fmt::format("{:>{}}  ", cells[i][k], width);
    }
  }
  return out;
}

std::string to_json(const std::vector<Shown>& all, const std::vector<std::string>& problems,
                    std::uint64_t at) {
  Json out{{"contexts", Json::array()}, {"problems", problems}};
  for (const Shown& shown : all) {
    Json context{{"process", shown.snapshot.process.id},
                 {"command", shown.command},
                 {"rank", shown.rank.empty() ? Json() : Json(shown.rank)},
                 {"heartbeat_age", age(shown.snapshot.heartbeat, at)},
                 {"asleep", shown.snapshot.asleep},
                 {"overdue", overdue(shown.snapshot, at)},
                 {"written_ago", age(shown.snapshot.written_at, at)},
                 {"wrong_sums", pullman::telemetry::wrong_sums(shown.snapshot)}};
    for (const SnapshotTable& table : shown.snapshot.tables) {
      Json rows = Json::array();
      for (const auto& row : table.rows) {
        Json one;
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
          one[table.columns[i].name] = to_json(row[i], table.columns[i], at);
        }
        rows.push_back(std::move(one));
      }
      context[table.name] = std::move(rows);
    }
    out["contexts"].push_back(std::move(context));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_prometheus(const std::vector<Shown>& all, std::uint64_t at) {
  Metrics out;
  for (const Shown& shown : all) {
    const SnapshotTable& context = shown.snapshot.table("context");
    if (context.rows.empty()) continue;
    const std::string labels = fmt::format(
        "process=\"{}\",context=\"{:016x}\",command=\"{}\",rank=\"{}\"", shown.snapshot.process.id,
        context.number(context.rows.front(), "epoch"), escaped(shown.command), escaped(shown.rank));
    out.add("pullman_context_heartbeat_seconds_ago", "gauge", "when it last made progress",
            fmt::format("pullman_context_heartbeat_seconds_ago{{{}}} {:.6f}\n", labels,
                        age(shown.snapshot.heartbeat, at)));
    out.add(
        "pullman_context_asleep", "gauge", "1: it sleeps until there is something to do",
        fmt::format("pullman_context_asleep{{{}}} {}\n", labels, shown.snapshot.asleep ? 1 : 0));
    out.add("pullman_context_overdue_seconds", "gauge",
            "for how long it has slept on behind the time at which it was to wake",
            fmt::format("pullman_context_overdue_seconds{{{}}} {:.6f}\n", labels,
                        overdue(shown.snapshot, at)));
    for (const SnapshotTable& table : shown.snapshot.tables) {
      for (const auto& row : table.rows) {
        const std::string names = labels_of(table, row, labels);
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
          add_value(out, table.name, table.columns[i], names, row[i], at);
        }
      }
    }
  }
  return out.text();
}

}  // namespace stat_program
