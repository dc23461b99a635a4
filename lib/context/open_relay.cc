#include "context/open_relay.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "pullman/status.h"
#include "relay/routes.h"

namespace pullman {

std::unique_ptr<relay::Relay> open_relay(const Config& config, Nics& nics,
                                         std::vector<engine::NicPorts>& opened) {
  if (config.relay.empty()) return nullptr;
  std::string why;
  auto routes = relay::read_routes(config.relay, why);
  if (!routes) throw Error(Status::kBadOption, why);
  auto first = std::find_if(opened.begin(), opened.end(), [](const engine::NicPorts& nic) {
    return !nic.device.loopback && !nic.device.stream;
  });
  if (first == opened.end()) first = opened.begin();
  const nic::Address& own = first->command->address();
  if (opened.size() == wire::kMaxNics || !nic::is_relayed(nic::relayed(own))) {
    log().warn(
        "there is no relay (PULLMAN_RELAY): it needs an IP address, and place beside {} NICs",
        opened.size());
    return nullptr;
  }
  auto relay = std::make_unique<relay::Relay>(std::move(*routes), config, own);
  opened.push_back(relay->open(*first));
  nics.add(opened.back());
  return relay;
}

}  // namespace pullman
