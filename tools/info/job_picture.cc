#include "info/job_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string_view>

#include "info/drawing.h"

namespace info {
namespace {

using nlohmann::json;

// More would be a picture that nobody can look at.
constexpr std::size_t kMaxRows = 256;
constexpr std::size_t kMaxColumns = 256;
constexpr std::size_t kMaxRails = 8;  // of a pair; further ones are not drawn
constexpr std::size_t kMaxFields = 1 << 16;

// A finding, as pullman::name() has it, the sign that stands for it, and its colour.
struct Sign {
  std::string_view finding;
  std::string_view sign;
  std::string_view colour;
  std::string_view meaning;
};
constexpr std::array kSigns{
    Sign{"fine", "", kFine, "packets of all sizes pass both ways"},
    Sign{"large lost", "L", kDegraded, "long packets are lost"},
    Sign{"other NIC there", "N", kDegraded, "packets arrive there by another NIC"},
    Sign{"other NIC here", "n", kDegraded, "packets arrive here by another NIC"},
    Sign{"one way there", "&gt;", kBroken, "packets get there, none comes back"},
    Sign{"one way back", "&lt;", kBroken, "packets come from there, none gets there"},
    Sign{"unreachable", "x", kBroken, "nothing passes"},
    Sign{"wrong host", "!", kBroken, "another process answers there"},
    Sign{"not checked", "?", kUnknown, "the check did not get to it"},
};
constexpr Sign kNotReached{"not reached", "-", kInk, "the process was not reached at all"};

const Sign& sign_of(std::string_view finding) {
  const auto at = std::find_if(kSigns.begin(), kSigns.end(),
                               [finding](const Sign& one) { return one.finding == finding; });
  return at == kSigns.end() ? kSigns.back() : *at;
}

std::string field(const Sign& sign, const std::string& tip) {
  return fmt::format(
      "<td bgcolor=\"{}\" width=\"20\" height=\"20\" fixedsize=\"true\" href=\"#\" "
      "title=\"{}\"><font color=\"{}\" point-size=\"11\"><b>{}</b></font></td>",
      sign.colour, in_label(tip, 400), sign.colour == kDegraded ? "black" : "white",
      sign.sign.empty() ? " " : sign.sign);
}

// The fields of a cell, side by side.
std::string cell(const std::string& host, const json& peer) {
  const std::string address = peer.at("peer").get<std::string>();
  std::string fields;
  if (!peer.at("reached").get<bool>()) {
    fields = field(kNotReached, fmt::format("{} to {}: {}", host, address,
                                            peer.at("why_not").get<std::string>()));
  }
  std::size_t count = 0;
  for (const json& rail : peer.at("rails")) {
    if (++count > kMaxRails) break;
    fields += field(
        sign_of(rail.at("finding").get<std::string>()),
        fmt::format("{} to {}, rail {} ({} to {}): {}", host, address,
                    rail.at("rail").get<unsigned>(), rail.at("nic").get<std::string>(),
                    rail.at("remote").get<std::string>(), rail.at("verdict").get<std::string>()));
  }
  if (fields.empty()) fields = "<td> </td>";
  return "<td align=\"left\"><table border=\"0\" cellborder=\"0\" cellspacing=\"1\" "
         "cellpadding=\"0\"><tr>" +
         fields + "</tr></table></td>";
}

std::string head_cell(std::string_view text) {
  return fmt::format("<td><b>{}</b></td>", text);
}

std::string left_cell(std::string_view text) {
  return fmt::format("<td align=\"left\">{}</td>", in_label(text, 80));
}

std::string legend() {
  std::string out = "<table border=\"0\" cellborder=\"0\" cellspacing=\"2\" cellpadding=\"2\">";
  const auto add = [&out](const Sign& sign) {
    out += "<tr>" + field(sign, std::string(sign.finding)) +
           left_cell(fmt::format("{}: {}", sign.finding, sign.meaning)) + "</tr>";
  };
  for (const Sign& sign : kSigns) add(sign);
  add(kNotReached);
  return out + "<tr><td> </td>" + left_cell("no field: it was not asked, as a process by itself") +
         "</tr></table>";
}

// The processes that were asked. The first has number 1.
std::vector<std::string> columns_of(const std::vector<json>& maps) {
  std::vector<std::string> out;
  for (const json& map : maps) {
    for (const json& peer : map.at("peers")) out.push_back(peer.at("peer").get<std::string>());
  }
  std::sort(out.begin(), out.end(), comes_before);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  if (out.size() > kMaxColumns) {
    throw std::runtime_error(
        fmt::format("a picture of {} processes: {} at most", out.size(), kMaxColumns));
  }
  return out;
}

// The hosts that asked. Where two have one name, as processes of one host do, the address is added.
std::vector<std::string> names_of(const std::vector<json>& maps) {
  std::map<std::string, std::size_t> times;
  for (const json& map : maps) ++times[map.at("host").get<std::string>()];
  std::vector<std::string> out;
  for (const json& map : maps) {
    const std::string host = map.at("host").get<std::string>();
    out.push_back(times[host] == 1
                      ? host
                      : fmt::format("{} ({})", host, map.at("address").get<std::string>()));
  }
  return out;
}

std::string row(const json& map, const std::string& host, const std::vector<std::string>& columns) {
  std::map<std::string, std::string> cells;
  for (const json& peer : map.at("peers")) {
    cells[peer.at("peer").get<std::string>()] = cell(host, peer);
  }
  std::string out = "<tr>" + left_cell(host);
  for (const std::string& address : columns) {
    const auto at = cells.find(address);
    out += at == cells.end() ? "<td> </td>" : at->second;
  }
  return out + "</tr>";
}

// The addresses with their numbers, beside the legend. Each column is filled up with empty lines,
// since its lines would spread over its height.
std::string keys(const std::vector<std::string>& columns) {
  constexpr std::size_t kLines = kSigns.size() + 2;
  std::string out;
  for (std::size_t at = 0; at < columns.size(); at += kLines) {
    out +=
        "<td valign=\"top\"><table border=\"0\" cellborder=\"0\" cellspacing=\"2\" "
        "cellpadding=\"2\">";
    for (std::size_t i = at; i < at + kLines; ++i) {
      const bool named = i < columns.size();
      out += fmt::format("<tr><td align=\"right\" height=\"20\"><b>{}</b></td>{}</tr>",
                         named ? std::to_string(i + 1) : " ", left_cell(named ? columns[i] : " "));
    }
    out += "</table></td>";
  }
  return out;
}

// How many rails there are, and how many of them are fine.
struct Count {
  std::size_t rails = 0;
  std::size_t fine = 0;
  std::size_t not_reached = 0;  // pairs of a host and a process
};

Count count_rails(const std::vector<json>& maps) {
  Count out;
  for (const json& map : maps) {
    for (const json& peer : map.at("peers")) {
      if (!peer.at("reached").get<bool>()) ++out.not_reached;
      for (const json& rail : peer.at("rails")) {
        ++out.rails;
        if (rail.at("finding").get<std::string>() == "fine") ++out.fine;
      }
    }
  }
  if (out.rails + out.not_reached > kMaxFields) {
    throw std::runtime_error(
        fmt::format("a picture of {} rails: {} at most", out.rails + out.not_reached, kMaxFields));
  }
  return out;
}

std::string sum_line(const Count& count) {
  std::string out = fmt::format("{} of {} rails are fine", count.fine, count.rails);
  if (count.not_reached > 0) {
    out +=
        fmt::format("; no answer: {} pair{}", count.not_reached, count.not_reached == 1 ? "" : "s");
  }
  return out;
}

// The node below is as wide as it needs to be, and not as the map is.
std::string picture(std::vector<json> maps) {
  std::sort(maps.begin(), maps.end(), [](const json& one, const json& other) {
    return comes_before(one.at("host").get<std::string>(), other.at("host").get<std::string>());
  });
  const std::vector<std::string> columns = columns_of(maps);
  const std::vector<std::string> hosts = names_of(maps);
  std::string out = head_of_graph("Which packets get through, rail by rail",
                                  {sum_line(count_rails(maps)),
                                   "A row: a host that asked. A column: a process that was asked.",
                                   "A field of a cell: a rail, rail 0 at the left."}) +
                    "rankdir=TB; ranksep=0.3\nmap [label=<<table border=\"0\" cellborder=\"0\" "
                    "cellspacing=\"3\" cellpadding=\"1\"><tr>" +
                    head_cell("from \\ to");
  for (std::size_t i = 1; i <= columns.size(); ++i) out += head_cell(std::to_string(i));
  out += "</tr>";
  for (std::size_t i = 0; i < maps.size(); ++i) out += row(maps[i], hosts[i], columns);
  return out +
         "</table>>]\nkey [label=<<table border=\"0\" cellborder=\"0\" cellspacing=\"0\" "
         "cellpadding=\"6\"><tr><td valign=\"top\">" +
         legend() + "</td>" + keys(columns) + "</tr></table>>]\nmap -> key [style=invis]\n}\n";
}

}  // namespace

json read_map(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  // What is nested deeper than any map is not taken, since it is copied and destroyed level by
  // level.
  const auto is_shallow = [](int depth, json::parse_event_t, const json&) { return depth < 16; };
  json map = json::parse(in, is_shallow, false);
  if (map.is_discarded()) {
    throw std::runtime_error(fmt::format("{} is no map, as --map writes one", file));
  }
  return map;
}

std::string job_picture(const std::vector<json>& maps) {
  if (maps.size() > kMaxRows) {
    throw std::runtime_error(
        fmt::format("a picture of {} maps: {} at most", maps.size(), kMaxRows));
  }
  try {
    return picture(maps);
  } catch (const json::exception& error) {
    throw std::runtime_error(fmt::format("this is no map, as --map writes one: {}", error.what()));
  }
}

}  // namespace info
