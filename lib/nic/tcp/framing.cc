#include "nic/tcp/framing.h"

#include <algorithm>

namespace pullman::nic::tcp {
namespace {

constexpr std::array<std::byte, 6> kMagicAndVersion = {
    std::byte{'P'}, std::byte{'U'}, std::byte{'L'}, std::byte{'T'}, std::byte{1}, std::byte{0}};

}  // namespace

Preamble make_preamble(std::uint16_t listening_port) {
  Preamble out;
  std::copy(kMagicAndVersion.begin(), kMagicAndVersion.end(), out.begin());
  out[6] = static_cast<std::byte>(listening_port >> 8);
  out[7] = static_cast<std::byte>(listening_port);
  return out;
}

std::optional<std::uint16_t> read_preamble(std::span<const std::byte> bytes) {
  if (!std::equal(kMagicAndVersion.begin(), kMagicAndVersion.end(), bytes.begin())) {
    return std::nullopt;
  }
  const auto port = std::to_integer<unsigned>(bytes[6]) << 8 | std::to_integer<unsigned>(bytes[7]);
  if (port == 0) return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

}  // namespace pullman::nic::tcp
