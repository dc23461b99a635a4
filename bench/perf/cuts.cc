#include "cuts.h"

#include <fmt/format.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "options.h"

namespace perf {

namespace {

constexpr std::array<const char*, 4> kKindNames = {"link", "silent", "deaf", "mute"};
constexpr double kLatest = 86400;

[[noreturn]] void refuse(std::string_view text) {
  throw Failure(
      fmt::format("'{}' is not a cut: write NIC[:silent|:deaf|:mute]@SECOND[-SECOND], as "
                  "eth1@2-4.5",
                  text));
}

std::chrono::nanoseconds parse_seconds(std::string_view number, std::string_view whole) {
  double value = 0;
  const char* end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, value);
  if (error != std::errc{} || rest != end || !(value >= 0 && value <= kLatest)) refuse(whole);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

CutKind parse_kind(std::string_view text, std::string_view whole) {
  const auto at = std::find(kKindNames.begin(), kKindNames.end(), text);
  if (at == kKindNames.end()) refuse(whole);
  return static_cast<CutKind>(at - kKindNames.begin());
}

// The name becomes part of a packet filter's rules: nothing but what interfaces are called.
bool is_nic_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() < IFNAMSIZ && std::all_of(text.begin(), text.end(), fits);
}

}  // namespace

const char* name(CutKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

Cut parse_cut(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == std::string_view::npos) refuse(text);
  const std::string_view what = text.substr(0, at);
  const std::string_view when = text.substr(at + 1);
  const std::size_t colon = what.find(':');
  const std::size_t dash = when.find('-');

  Cut cut;
  cut.nic = what.substr(0, colon);
  if (!is_nic_name(cut.nic)) refuse(text);
  if (colon != std::string_view::npos) cut.kind = parse_kind(what.substr(colon + 1), text);
  cut.at = parse_seconds(when.substr(0, dash), text);
  if (dash != std::string_view::npos) cut.mended_at = parse_seconds(when.substr(dash + 1), text);
  if (cut.mended_at && *cut.mended_at <= cut.at) refuse(text);
  return cut;
}

std::vector<Cut> parse_cuts(const std::vector<std::string>& texts) {
  std::vector<Cut> cuts;
  for (const std::string& text : texts) cuts.push_back(parse_cut(text));
  std::stable_sort(cuts.begin(), cuts.end(),
                   [](const Cut& a, const Cut& b) { return a.at < b.at; });
  for (std::size_t later = 1; later < cuts.size(); ++later) {
    for (std::size_t i = 0; i < later; ++i) {
      if (cuts[i].nic == cuts[later].nic &&
          (!cuts[i].mended_at || *cuts[i].mended_at > cuts[later].at)) {
        throw Failure(fmt::format("{} is cut while it is cut: mend it first", cuts[i].nic));
      }
    }
  }
  return cuts;
}

}  // namespace perf
