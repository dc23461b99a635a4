#include "sim/bad_heads.h"

#include <algorithm>

#include "sim/draw.h"

namespace pullman::sim {

std::vector<std::byte> BadHeads::draw(const nic::Address& to) {
  const auto random_byte = [this] { return static_cast<std::byte>(random_.next()); };
  wire::RelayHead head;
  head.for_data = percent(random_, 50);
  head.to = to;
  head.from = node_.address();
  head.passed_count = static_cast<std::uint8_t>(between(random_, 0, wire::kMaxHops));
  head.hops = static_cast<std::uint8_t>(between(random_, 0, wire::kMaxHops + 1));
  for (wire::RelayId& id : head.passed) id = random_.next();
  std::vector<std::byte> bytes(wire::relay_bytes(head) + log_between(random_, 0, 2000));
  std::byte* const packet = wire::put_relay(bytes.data(), head);
  std::generate(packet, bytes.data() + bytes.size(), random_byte);
  switch (random_.below(4)) {
    case 0:
      std::generate(bytes.begin(), bytes.end(), random_byte);
      break;
    case 1:  // before the addresses
      bytes[random_.below(wire::kRelayFixedBytes)] = random_byte();
      break;
    case 2:
      bytes.resize(random_.below(bytes.size()));
      break;
    default:
      break;
  }
  return bytes;
}

void BadHeads::meddle(PeerId peer, const std::vector<nic::Address>& addresses) {
  if (chance_ == 0 || !percent(random_, chance_)) return;
  // Only what comes from neighbours is relayed.
  if (!node_.engine().neighbours().is_neighbour(peer)) return;
  Sent& sent = sent_.emplace_back();
  sent.bytes = draw(addresses[random_.below(addresses.size())]);
  const std::span<const std::byte> whole[] = {sent.bytes};
  SendOptions options;
  options.space = relay::kSpace;
  node_.engine().sending().submit(node_.local_now(),
                                  {.peer = peer, .tag = 0, .segments = whole, .options = options},
                                  sent.request);
}

void BadHeads::reap() {
  while (!sent_.empty() && sent_.front().request.done()) sent_.pop_front();
}

}  // namespace pullman::sim
