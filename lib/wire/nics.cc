#include "wire/nics.h"

#include "wire/bytes.h"
#include "wire/header.h"

namespace pullman::wire {
namespace {

constexpr std::size_t kFixedBytes = 15;
constexpr std::size_t kPlaceBytes = 3;
constexpr std::uint8_t kAsks = 1;
constexpr std::uint8_t kNoWays = 2;

std::optional<RailPlace> take_place(const std::byte* at, std::uint8_t nics) {
  const RailPlace place{load8(at), load8(at + 1), load8(at + 2)};
  if (place.rail == 0 || place.rail >= kMaxRails) return std::nullopt;
  if (place.mine >= nics || place.theirs >= kMaxNics) return std::nullopt;
  return place;
}

}  // namespace

std::size_t nics_bytes(const NicList& list) {
  std::size_t total = kFrameHeadBytes + kFixedBytes + kPlaceBytes * list.rail_count;
  for (std::size_t i = 0; i < list.nic_count; ++i) total += wire_bytes(list.nics[i]);
  return total;
}

std::size_t put_nics(std::byte* out, const NicList& list) {
  const std::size_t total = nics_bytes(list);
  put_frame_head(out, FrameType::kNics, total - kFrameHeadBytes);
  std::byte* at = out + kFrameHeadBytes;
  store32(at, list.count);
  store8(at + 4, (list.asks ? kAsks : 0) | (list.no_ways ? kNoWays : 0));
  store8(at + 5, list.nic_count);
  store8(at + 6, list.rail_count);
  store64(at + 7, list.host);
  at += kFixedBytes;
  for (std::size_t i = 0; i < list.rail_count; ++i) {
    store8(at, list.rails[i].rail);
    store8(at + 1, list.rails[i].mine);
    store8(at + 2, list.rails[i].theirs);
    at += kPlaceBytes;
  }
  for (std::size_t i = 0; i < list.nic_count; ++i) at = put_nic(at, list.nics[i]);
  return total;
}

std::optional<NicList> decode_nics(std::span<const std::byte> body) {
  if (body.size() < kFixedBytes) return std::nullopt;
  NicList list;
  list.count = load32(body.data());
  const std::uint8_t flags = load8(body.data() + 4);
  list.asks = (flags & kAsks) != 0;
  list.no_ways = (flags & kNoWays) != 0;
  list.nic_count = load8(body.data() + 5);
  list.rail_count = load8(body.data() + 6);
  list.host = load64(body.data() + 7);
  if (flags > (kAsks | kNoWays)) return std::nullopt;
  if (list.nic_count == 0 || list.nic_count > kMaxNics || list.rail_count >= kMaxRails) {
    return std::nullopt;
  }
  auto rest = body.subspan(kFixedBytes);
  if (rest.size() < kPlaceBytes * list.rail_count) return std::nullopt;
  for (std::size_t i = 0; i < list.rail_count; ++i) {
    const auto place = take_place(rest.data(), list.nic_count);
    if (!place) return std::nullopt;
    list.rails[i] = *place;
    rest = rest.subspan(kPlaceBytes);
  }
  for (std::size_t i = 0; i < list.nic_count; ++i) {
    if (!take_nic(rest, list.nics[i])) return std::nullopt;
  }
  if (!rest.empty()) return std::nullopt;
  return list;
}

std::optional<std::uint32_t> list_count(std::span<const std::byte> packet_body) {
  if (packet_body.size() < kFrameHeadBytes + kFixedBytes) return std::nullopt;
  if (packet_body[0] != static_cast<std::byte>(FrameType::kNics)) return std::nullopt;
  return load32(packet_body.data() + kFrameHeadBytes);
}

}  // namespace pullman::wire
