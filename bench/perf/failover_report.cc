// What is said of a stream under cuts: JSON, text, CSV, and a drawing.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "failover.h"
#include "failover_plot.h"

namespace perf {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMaxChangesTold = 1000;
constexpr double kBucketSeconds = std::chrono::duration<double>(kBucket).count();

double milliseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count() / 1000) / 1e3;
}

ordered_json milliseconds(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? ordered_json(milliseconds(*time)) : ordered_json();
}

ordered_json cut_json(const CutResult& cut, Clock::time_point start) {
  const auto moment = [&](const std::optional<Moment>& at) {
    return at ? ordered_json(milliseconds(at->begin - start)) : ordered_json();
  };
  return {{"nic", cut.done.cut.nic},
          {"kind", name(cut.done.cut.kind)},
          {"at_ms", moment(cut.done.made)},
          {"mended_at_ms", moment(cut.done.mended)},
          {"gap_ms", milliseconds(cut.gap)},
          {"later_gap_ms", milliseconds(cut.later_gap)},
          {"left_ms", milliseconds(cut.left)},
          {"reinstated_ms", milliseconds(cut.reinstated)},
          {"after_mb_per_s", cut.after_mb_per_s ? ordered_json(*cut.after_mb_per_s) : nullptr}};
}

ordered_json changes_json(const RailWatch& watch, Clock::time_point start) {
  ordered_json out = ordered_json::array();
  for (const RailChange& change : watch.changes()) {
    if (out.size() == kMaxChangesTold) break;
    out.push_back({{"at_ms", milliseconds(change.at - start)},
                   {"rail", change.rail},
                   {"state", name(change.state)},
                   {"reason", name(change.reason)}});
  }
  return out;
}

// The longest of those that came back; none if none did.
ordered_json longest_reinstated(const FailoverResult& result) {
  std::optional<std::chrono::nanoseconds> longest;
  for (const CutResult& cut : result.cuts) {
    if (cut.reinstated) longest = std::max(longest.value_or(*cut.reinstated), *cut.reinstated);
  }
  return milliseconds(longest);
}

std::string csv(const FailoverResult& result, const RailWatch& watch) {
  std::string text = "ms,mb_per_s,longest_gap_ms";
  for (const auto& rail : watch.rails())
    text += fmt::format(",rail{}_{}_mb_per_s", rail.number, rail.nic);
  text += '\n';
  for (std::size_t i = 0; i < result.arrived.size(); ++i) {
    const Bucket& bucket = result.arrived[i];
    text += fmt::format("{},{:.3f},{:.3f}", i * kBucket.count(),
                        static_cast<double>(bucket.bytes) / 1e6 / kBucketSeconds,
                        static_cast<double>(bucket.gap_us) / 1e3);
    for (const auto& rail : watch.rails()) {
      const auto& sent = watch.sent_over(rail.number);
      text += fmt::format(
          ",{:.3f}", i < sent.size() ? static_cast<double>(sent[i]) / 1e6 / kBucketSeconds : 0.0);
    }
    text += '\n';
  }
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (!written || std::fflush(file.get()) != 0) throw Failure("cannot write " + path);
}

// The sender's line of each rail, the receiver's of all, and where cuts lasted.
Drawing drawing_of(const FailoverResult& result, const RailWatch& watch) {
  Drawing drawing;
  drawing.step_ms = static_cast<double>(kBucket.count());
  const double gbit = 8e-9 / kBucketSeconds;
  for (const auto& rail : watch.rails()) {
    Curve curve{fmt::format("sent over {}", rail.nic), {}};
    for (const auto bytes : watch.sent_over(rail.number)) {
      curve.values.push_back(static_cast<double>(bytes) * gbit);
    }
    drawing.curves.push_back(std::move(curve));
  }
  Curve arrived{"arrived, all messages", {}};
  for (const Bucket& bucket : result.arrived) {
    arrived.values.push_back(static_cast<double>(bucket.bytes) * gbit);
  }
  drawing.curves.push_back(std::move(arrived));
  for (const CutResult& cut : result.cuts) {
    if (!cut.done.made) continue;
    const auto end = cut.done.mended ? cut.done.mended->end : result.start + result.elapsed;
    drawing.bands.push_back({fmt::format("{} {}", cut.done.cut.nic, name(cut.done.cut.kind)),
                             milliseconds(cut.done.made->begin - result.start),
                             milliseconds(end - result.start)});
  }
  return drawing;
}

}  // namespace

ordered_json failover_json(const FailoverResult& result, const RailWatch& watch,
                           const nlohmann::json& server) {
  std::uint32_t longest = 0;
  for (const Bucket& bucket : result.arrived) longest = std::max(longest, bucket.gap_us);
  ordered_json out;
  out["longest_gap_ms"] = static_cast<double>(longest) / 1e3;
  out["reinstated_ms"] = longest_reinstated(result);
  out["never_reinstated"] =
      std::count_if(result.cuts.begin(), result.cuts.end(),
                    [](const CutResult& cut) { return cut.done.mended && !cut.reinstated; });
  for (const char* key : {"lost", "duplicated", "misordered", "corrupted"}) {
    out[key] = server.value(key, std::uint64_t{0});
  }
  out["sent_twice"] = 0;
  out["rails"] = ordered_json::array();
  for (const auto& rail : watch.rails()) out["rails"].push_back(to_json(rail));
  out["server_rails"] = server.value("rails", nlohmann::json::array());
  out["cuts"] = ordered_json::array();
  for (const CutResult& cut : result.cuts) out["cuts"].push_back(cut_json(cut, result.start));
  out["changes"] = changes_json(watch, result.start);
  out["rail_events"] = ordered_json::array();
  for (const auto& event : watch.events()) out["rail_events"].push_back(to_json(event));
  out["began_ns"] = std::chrono::nanoseconds(result.start.time_since_epoch()).count();
  return out;
}

std::string failover_text(const ordered_json& json, const RailWatch& watch) {
  const auto of = [&](const char* key) { return json.at(key).dump(); };
  std::string text = "\n" + rail_table(watch.rails());
  if (!json.at("cuts").empty()) {
    text += fmt::format("\n{:>10} {:<10} {:<8} {:>10} {:>10} {:>10} {:>14}\n", "cut at ms", "NIC",
                        "how", "gap ms", "left ms", "mended at", "reinstated ms");
  }
  for (const ordered_json& cut : json.at("cuts")) {
    const auto cell = [&](const char* key) {
      return cut.at(key).is_null() ? "-" : fmt::format("{:.1f}", cut.at(key).get<double>());
    };
    text +=
        fmt::format("{:>10} {:<10} {:<8} {:>10} {:>10} {:>10} {:>14}\n", cell("at_ms"),
                    cut.at("nic").get<std::string>(), cut.at("kind").get<std::string>(),
                    cell("gap_ms"), cell("left_ms"), cell("mended_at_ms"), cell("reinstated_ms"));
  }
  return text + fmt::format(
                    "\nlongest gap {} ms; {} lost, {} duplicated, {} misordered, {} corrupted; "
                    "{} packets sent twice",
                    of("longest_gap_ms"), of("lost"), of("duplicated"), of("misordered"),
                    of("corrupted"), of("sent_twice"));
}

void write_failover(const std::string& prefix, const FailoverResult& result,
                    const RailWatch& watch) {
  write_file(prefix + ".csv", csv(result, watch));
  write_file(prefix + ".svg", to_svg(drawing_of(result, watch)));
}

}  // namespace perf
