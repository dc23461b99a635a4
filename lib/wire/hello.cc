#include "wire/hello.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace pullman::wire {
std::size_t wire_bytes(const WireAddress& address) {
  return 2u + address.length;
}

std::byte* put_address(std::byte* out, const WireAddress& address) {
  store8(out, address.kind);
  store8(out + 1, address.length);
  std::memcpy(out + 2, address.bytes.data(), address.length);
  return out + wire_bytes(address);
}

bool take_address(std::span<const std::byte>& in, WireAddress& out) {
  if (in.size() < 2) return false;
  out.kind = load8(in.data());
  out.length = load8(in.data() + 1);
  if (out.length == 0 || out.length > kMaxAddressBytes || in.size() < wire_bytes(out)) return false;
  const unsigned ip = out.kind & ~unsigned{kRelayedKind};
  if (ip == 4 ? out.length != 6 : ip == 6 ? out.length != 22 : out.kind != 255) return false;
  std::memcpy(out.bytes.data(), in.data() + 2, out.length);
  in = in.subspan(wire_bytes(out));
  return true;
}

std::size_t wire_bytes(const NicInfo& nic) {
  return kNicFixedBytes + wire_bytes(nic.command) + wire_bytes(nic.data);
}

std::byte* put_nic(std::byte* out, const NicInfo& nic) {
  store16(out, nic.command_packet_bytes);
  store16(out + 2, nic.data_packet_bytes);
  store32(out + 4, nic.mbps);
  store8(out + 8, nic.device);
  store8(out + 9, nic.distance);
  store16(out + 10, nic.stream ? 1 : 0);
  return put_address(put_address(out + kNicFixedBytes, nic.command), nic.data);
}

bool take_nic(std::span<const std::byte>& in, NicInfo& out) {
  if (in.size() < kNicFixedBytes) return false;
  out.command_packet_bytes = load16(in.data());
  out.data_packet_bytes = load16(in.data() + 2);
  out.mbps = load32(in.data() + 4);
  out.device = load8(in.data() + 8);
  out.distance = load8(in.data() + 9);
  if (load16(in.data() + 10) > 1) return false;
  out.stream = load16(in.data() + 10) == 1;
  in = in.subspan(kNicFixedBytes);
  return take_address(in, out.command) && take_address(in, out.data);
}

bool WireAddress::operator==(const WireAddress& other) const {
  return kind == other.kind && length == other.length &&
         std::equal(bytes.begin(), bytes.begin() + length, other.bytes.begin());
}

bool several_nics(std::span<const NicInfo> nics) {
  return std::any_of(nics.begin(), nics.end(), [&](const NicInfo& nic) {
    return nic.device != nics.front().device || nic.stream != nics.front().stream;
  });
}

std::size_t encoded_bytes(const Hello& hello) {
  std::size_t total = kHelloFixedBytes + wire_bytes(hello.called);
  for (std::size_t i = 0; i < hello.nic_count; ++i) {
    total += wire_bytes(hello.nics[i]);
  }
  return total;
}

void encode(const Hello& hello, std::byte* out) {
  store64(out, hello.epoch);
  store32(out + 8, hello.reply_to.index);
  store32(out + 12, hello.reply_to.proof);
  store64(out + 16, hello.first_number);
  store64(out + 24, hello.first_message);
  store64(out + 32, hello.allowance);
  store32(out + 40, hello.eager_bytes);
  store16(out + 44, hello.credit);
  store8(out + 46, hello.nic);
  store8(out + 47, hello.nic_count);
  store16(out + 48, hello.call);
  store16(out + 50, 0);
  store64(out + 52, hello.host);
  std::byte* at = put_address(out + kHelloFixedBytes, hello.called);
  for (std::size_t i = 0; i < hello.nic_count; ++i) {
    at = put_nic(at, hello.nics[i]);
  }
}

std::optional<Hello> decode_hello(std::span<const std::byte> body) {
  if (body.size() < kHelloFixedBytes) return std::nullopt;
  const std::byte* in = body.data();
  Hello hello;
  hello.epoch = load64(in);
  hello.reply_to = {load32(in + 8), load32(in + 12)};
  hello.first_number = load64(in + 16);
  hello.first_message = load64(in + 24);
  hello.allowance = load64(in + 32);
  hello.eager_bytes = load32(in + 40);
  hello.credit = load16(in + 44);
  hello.nic = load8(in + 46);
  hello.nic_count = load8(in + 47);
  hello.call = load16(in + 48);
  if (load16(in + 50) != 0) return std::nullopt;
  hello.host = load64(in + 52);
  if (hello.nic_count == 0 || hello.nic_count > kMaxNics || hello.nic >= hello.nic_count ||
      hello.credit == 0) {
    return std::nullopt;
  }
  std::span<const std::byte> rest = body.subspan(kHelloFixedBytes);
  if (!take_address(rest, hello.called)) return std::nullopt;
  for (std::size_t i = 0; i < hello.nic_count; ++i) {
    if (!take_nic(rest, hello.nics[i])) return std::nullopt;
  }
  // The rest is padding, all zero (wire.md 5.5).
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  if (!std::all_of(rest.begin(), rest.end(), is_zero)) return std::nullopt;
  return hello;
}

}  // namespace pullman::wire
