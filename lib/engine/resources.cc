#include "engine/resources.h"

#include <algorithm>

#include "message/tx/fragments.h"

namespace pullman::engine {
namespace {

reliability::LinkOptions link_options_of(const Config& config) {
  return {.window = static_cast<std::uint32_t>(config.send_window),
          .packets_per_ack = static_cast<std::uint32_t>(config.ack_packets),
          .ack_delay = config.ack_delay,
          .pto_initial = config.pto_initial,
          .pto_floor = config.pto_min,
          .pto_ceiling = std::max(config.pto_initial, config.peer_timeout / 8)};
}

// Packets that are sealed need no checksum.
Config without_needless_checksum(Config config, wire::Protection protection) {
  config.checksum = config.checksum && protection == wire::Protection::kOff;
  return config;
}

// Half of a peer's window is its own share, the rest is lent; a share is no less than what a HELLO
// tells.
std::uint64_t own_share(std::uint64_t window) {
  return std::max<std::uint64_t>(window / 2, message::kLeastAllowance);
}

std::uint32_t eager_bytes_of(const Config& config, std::uint64_t window) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      window / 2 - message::kMessageCharge, message::kLeastEager, config.eager_bytes));
}

}  // namespace

EngineResources::EngineResources(const Config& configuration, const Identity& identity,
                                 std::size_t largest_packet)
    : config(without_needless_checksum(configuration, identity.protection)),
      random(identity.key),
      epoch(random.next()),
      host(identity.host),
      pairs(config.shared_memory ? identity.pairs : nullptr),
      packets(config.send_packets, largest_packet + message::kFragmentRoom),
      rings(config.max_peers * wire::kMaxRails),
      arrival_bitmaps(config.max_peers * wire::kMaxRails),
      id_bitmaps(2 * config.max_peers),
      active_sends(config.max_peers),
      spanning_messages(config.max_peers),
      active_messages(config.max_peers),
      link_options(link_options_of(config)),
      link_resources{{hotel, rings, packets}, arrival_bitmaps},
      window(config.unexpected_bytes / config.max_peers),
      reserve(config.unexpected_bytes - own_share(window) * config.max_peers),
      eager_bytes(eager_bytes_of(config, window)),
      inbox{matchers.first(),
            held.resource(),
            id_bitmaps,
            shorts,
            active_messages,
            inbox_counters,
            {own_share(window), window, reserve},
            eager_bytes,
            &matchers.others(),
            &regions},
      outbox{packets, id_bitmaps, active_sends, spanning_messages, outbox_counters},
      peers(config.max_peers) {}

}  // namespace pullman::engine
