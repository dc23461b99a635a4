// Routes of the relay: what Config::relay says, and what is learned from packets that come. Pure:
// it knows addresses and handles of peers, and sends nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nic/address.h"
#include "nic/prefix.h"
#include "pullman/types.h"

namespace pullman::relay {

struct Route {
  std::optional<nic::Prefix> to;  // empty: whatever has no other route
  nic::Address via;               // of a neighbour's command channel
};

// Reads Config::relay: items between commas, each "PREFIX via HOST:PORT", "default via HOST:PORT",
// or "on". Returns the routes, those of the longest prefixes first and otherwise in their order;
// none for "on". On failure returns nothing and puts the reason into `why`.
std::optional<std::vector<Route>> read_routes(std::string_view text, std::string& why);

// Says behind which neighbour an origin is: the one that its last packet came from. The number of
// origins is bounded; the one that was heard longest ago is forgotten.
class LearnedRoutes {
 public:
  static constexpr std::size_t kMax = 1024;

  void note(const nic::Address& origin, PeerId neighbour);
  std::optional<PeerId> find(const nic::Address& to) const;
  std::size_t size() const { return known_.size(); }

 private:
  struct Learned {
    PeerId neighbour;
    std::uint64_t heard = 0;  // counts packets
  };

  void forget_oldest();

  std::map<nic::Address, Learned, nic::AddressOrder> known_;
  std::uint64_t packets_ = 0;
};

}  // namespace pullman::relay
