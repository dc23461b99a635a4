#include "relay/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim.hpp>

namespace pullman::relay {
namespace {

constexpr const char* kForm =
    "write 'PREFIX via HOST:PORT', 'default via HOST:PORT' or 'on', between commas";

std::optional<Route> read_route(const std::string& item, std::string& why) {
  std::vector<std::string> words;
  boost::algorithm::split(words, item, boost::algorithm::is_space(),
                          boost::algorithm::token_compress_on);
  if (words.size() != 3 || words[1] != "via") {
    why = fmt::format("'{}' is no route: {}", item, kForm);
    return std::nullopt;
  }
  Route route;
  if (words[0] != "default") {
    route.to = nic::parse_prefix(words[0]);
    if (!route.to) {
      why = fmt::format("'{}' is no prefix in '{}': {}", words[0], item, kForm);
      return std::nullopt;
    }
  }
  const auto via = nic::parse(words[2], 0, why);
  if (!via) return std::nullopt;
  if (nic::port_of(*via) == 0 || nic::is_relayed(*via)) {
    why = fmt::format("'{}' is no neighbour's HOST:PORT in '{}'", words[2], item);
    return std::nullopt;
  }
  route.via = *via;
  return route;
}

int bits_of(const Route& route) {
  return route.to ? route.to->bits : -1;
}

}  // namespace

std::optional<std::vector<Route>> read_routes(std::string_view text, std::string& why) {
  std::vector<std::string> items;
  boost::algorithm::split(items, text, boost::algorithm::is_any_of(","));
  std::vector<Route> routes;
  for (std::string& item : items) {
    boost::algorithm::trim(item);
    if (item == "on") continue;
    const auto route = read_route(item, why);
    if (!route) return std::nullopt;
    routes.push_back(*route);
  }
  std::stable_sort(routes.begin(), routes.end(),
                   [](const Route& a, const Route& b) { return bits_of(a) > bits_of(b); });
  return routes;
}

void LearnedRoutes::note(const nic::Address& origin, PeerId neighbour) {
  const auto found = known_.find(origin);
  if (found == known_.end() && known_.size() == kMax) forget_oldest();
  known_[origin] = {.neighbour = neighbour, .heard = ++packets_};
}

std::optional<PeerId> LearnedRoutes::find(const nic::Address& to) const {
  const auto found = known_.find(to);
  return found == known_.end() ? std::nullopt : std::optional(found->second.neighbour);
}

void LearnedRoutes::forget_oldest() {
  known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
    return a.second.heard < b.second.heard;
  }));
}

}  // namespace pullman::relay
