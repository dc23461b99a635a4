#include "wire/relay.h"

#include "wire/bytes.h"

namespace pullman::wire {
namespace {

constexpr std::uint8_t kRelayVersion = 1;

bool is_ip(const WireAddress& address) {
  return address.kind == 4 || address.kind == 6;
}

}  // namespace

std::size_t relay_bytes(const RelayHead& head) {
  return kRelayFixedBytes + wire_bytes(head.to) + wire_bytes(head.from) +
         head.passed_count * sizeof(RelayId);
}

std::byte* put_relay(std::byte* out, const RelayHead& head) {
  store8(out, kRelayVersion);
  store8(out + 1, head.for_data ? 1 : 0);
  store8(out + 2, head.hops);
  store8(out + 3, head.passed_count);
  out = put_address(put_address(out + kRelayFixedBytes, head.to), head.from);
  for (std::size_t i = 0; i < head.passed_count; ++i) {
    store64(out, head.passed[i]);
    out += sizeof(RelayId);
  }
  return out;
}

// With each process that it passes a packet has one hop less and one entry more, so neither can be
// made to run over.
std::optional<RelayHead> take_relay(std::span<const std::byte>& in) {
  if (in.size() < kRelayFixedBytes || load8(in.data()) != kRelayVersion) return std::nullopt;
  RelayHead head;
  const std::uint8_t channel = load8(in.data() + 1);
  head.for_data = channel == 1;
  head.hops = load8(in.data() + 2);
  head.passed_count = load8(in.data() + 3);
  const bool in_range = channel <= 1 && head.hops >= 1 && head.passed_count >= 1 &&
                        head.hops + head.passed_count <= kMaxHops + 1;
  if (!in_range) return std::nullopt;
  std::span<const std::byte> rest = in.subspan(kRelayFixedBytes);
  if (!take_address(rest, head.to) || !take_address(rest, head.from)) return std::nullopt;
  if (!is_ip(head.to) || !is_ip(head.from)) return std::nullopt;
  if (rest.size() <= head.passed_count * sizeof(RelayId)) return std::nullopt;
  for (std::size_t i = 0; i < head.passed_count; ++i) {
    head.passed[i] = load64(rest.data());
    rest = rest.subspan(sizeof(RelayId));
  }
  in = rest;
  return head;
}

}  // namespace pullman::wire
