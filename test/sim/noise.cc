#include "sim/noise.h"

#include <algorithm>

#include "sim/draw.h"
#include "sim/packet_view.h"

namespace pullman::sim {
namespace {

constexpr std::size_t kMemory = 64;

Endpoint any_endpoint(Random& random, const World& world) {
  Endpoint at{static_cast<std::uint8_t>(random.below(world.hosts)),
              static_cast<Channel>(random.below(2))};
  if (world.nics > 1) at.nic = static_cast<std::uint8_t>(random.below(world.nics));
  return at;
}

std::vector<std::byte> random_bytes(Random& random) {
  std::vector<std::byte> bytes(log_between(random, 0, 1472));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  // Half of them have a plausible header.
  if (bytes.size() >= wire::kHeaderBytes && percent(random, 50)) {
    wire::PacketHeader header;
    header.type = static_cast<wire::PacketType>(between(random, 1, 5));
    header.flags = static_cast<std::uint8_t>(random.below(2));
    header.length = static_cast<std::uint16_t>(bytes.size());
    header.to = {static_cast<std::uint32_t>(random.below(8)),
                 static_cast<std::uint32_t>(random.next())};
    header.number = static_cast<std::uint32_t>(random.next());
    wire::encode(header, bytes.data());
  }
  return bytes;
}

void change_a_byte(Random& random, std::span<std::byte> bytes) {
  if (!bytes.empty()) bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
}

// Returns a copy with one header field or body byte changed, sealed again if it was sealed.
std::optional<std::vector<std::byte>> forged(Random& random, std::span<const std::byte> original,
                                             bool knows_proof) {
  const PacketView view(original);
  wire::PacketHeader header = view.header;
  if (!view.accepted() || header.type == wire::PacketType::kHello) return std::nullopt;
  std::vector<std::byte> bytes(original.begin(), original.end());
  if (!knows_proof) header.to.proof ^= static_cast<std::uint32_t>(between(random, 1, 0xFFFFFFFF));
  const auto low = static_cast<std::uint32_t>(random.next());
  switch (random.below(6)) {
    case 0:
      header.number += static_cast<std::uint32_t>(log_between(random, 0, low));
      break;
    case 1:
      header.cumulative += static_cast<std::uint32_t>(log_between(random, 0, low));
      break;
    case 2:
      header.floor_distance = static_cast<std::uint16_t>(random.below(wire::kWindow));
      break;
    case 3:
      header.credit = static_cast<std::uint16_t>(low);
      break;
    case 4:
      header.hold = static_cast<std::uint16_t>(low);
      break;
    default:
      break;
  }
  const bool sealed = header.has(wire::kFlagChecksum);
  wire::encode(header, bytes.data());
  wire::set_flag(bytes.data(), static_cast<std::uint8_t>(view.protection));
  const std::size_t body = wire::header_bytes(header.type);
  if (random.below(2) == 0) change_a_byte(random, std::span(bytes).subspan(body));
  if (sealed) wire::seal(bytes, {});
  return bytes;
}

std::optional<std::vector<std::byte>> forged_hello(Random& random,
                                                   std::span<const std::byte> original) {
  const PacketView view(original);
  const wire::PacketHeader& header = view.header;
  if (!view.accepted() || header.type != wire::PacketType::kHello) return std::nullopt;
  std::vector<std::byte> bytes(original.begin(), original.end());
  const std::size_t changes = between(random, 1, 4);
  for (std::size_t i = 0; i < changes; ++i) {
    change_a_byte(random, std::span(bytes).subspan(wire::kHeaderBytes));
  }
  if (header.has(wire::kFlagChecksum)) wire::seal(bytes, {});
  return bytes;
}

}  // namespace

void NoiseMaker::remember(Random& random, const Passing& passing) {
  if (memory_.size() < kMemory) memory_.emplace_back();
  Injection& place = memory_[random.below(memory_.size())];
  place.to = passing.to;
  place.bytes.assign(passing.bytes.begin(), passing.bytes.end());
}

std::optional<NoiseMaker::Injection> NoiseMaker::hear(Random& random, const World& world,
                                                      const Passing& passing) {
  const auto happens = [&](std::uint64_t chance) { return chance != 0 && random.chance(chance); };
  if ((chances.replay | chances.misroute) != 0 && random.below(8) == 0) remember(random, passing);
  if (happens(chances.stray)) return Injection{any_endpoint(random, world), random_bytes(random)};
  if (happens(chances.forge)) {
    auto bytes = forged(random, passing.bytes, chances.knows_proof);
    if (bytes) return Injection{passing.to, std::move(*bytes)};
  }
  if (happens(chances.hello)) {
    auto bytes = forged_hello(random, passing.bytes);
    if (bytes) return Injection{passing.to, std::move(*bytes)};
  }
  if (memory_.empty()) return std::nullopt;
  if (happens(chances.replay)) return memory_[random.below(memory_.size())];
  if (happens(chances.misroute)) {
    // Even a HELLO, since it names the port it is for (wire.md 5.4).
    const Injection& old = memory_[random.below(memory_.size())];
    return Injection{any_endpoint(random, world), old.bytes};
  }
  return std::nullopt;
}

}  // namespace pullman::sim
