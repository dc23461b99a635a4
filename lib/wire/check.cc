#include "wire/check.h"

#include <algorithm>
#include <cstring>

#include "wire/bytes.h"

namespace pullman::wire {
namespace {

constexpr std::uint8_t kUnknownPeer = 2;

// Returns true if all bytes are zero, so that a rail that damages long packets is not found fine.
// Comparing each byte with the one before it is fast.
bool is_padding(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == std::byte{0} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Writes what CHECK and CHECKED begin with: count (2), size or unknown peer (1), zero (1), token
// (8).
void put_round(std::byte* out, const CheckRound& round, std::uint8_t what) {
  store16(out, round.count);
  store8(out + 2, what);
  store8(out + 3, 0);
  store64(out + 4, round.token);
}

CheckRound load_round(const std::byte* in) {
  return {.count = load16(in), .token = load64(in + 4)};
}

std::byte* begin_frame(std::span<std::byte> out, FrameType type) {
  std::fill(out.begin(), out.end(), std::byte{0});
  put_frame_head(out.data(), type, out.size() - kCheckHeadBytes);
  return out.data() + kCheckHeadBytes;
}

}  // namespace

std::size_t least_check_bytes(const WireAddress& called, const WireAddress& reply_to) {
  return kCheckHeadBytes + kCheckFixedBytes + wire_bytes(called) + wire_bytes(reply_to);
}

void put_check(std::span<std::byte> out, const Check& check) {
  std::byte* at = begin_frame(out, FrameType::kCheck);
  put_round(at, check.round, static_cast<std::uint8_t>(check.size));
  store64(at + 12, check.epoch);
  std::byte* reply_to = at + kCheckFixedBytes + wire_bytes(check.called);
  put_address(at + kCheckFixedBytes, check.called);
  put_address(reply_to, check.reply_to);
}

void put_checked(std::span<std::byte> out, const Checked& checked) {
  std::byte* at = begin_frame(out, FrameType::kChecked);
  put_round(at, checked.round,
            checked.unknown_peer ? kUnknownPeer : static_cast<std::uint8_t>(checked.size));
  if (checked.unknown_peer) return store64(at + 12, checked.epoch);
  store8(at + 12, checked.arrived[0]);
  store8(at + 13, checked.arrived[1]);
  store8(at + 14, checked.elsewhere);
}

std::optional<Check> decode_check(std::span<const std::byte> body) {
  if (body.size() < kCheckFixedBytes) return std::nullopt;
  const std::uint8_t size = load8(body.data() + 2);
  if (size >= kCheckSizes || load8(body.data() + 3) != 0) return std::nullopt;
  Check check{.round = load_round(body.data()),
              .size = static_cast<CheckSize>(size),
              .epoch = load64(body.data() + 12),
              .called = {},
              .reply_to = {}};
  auto rest = body.subspan(kCheckFixedBytes);
  if (!take_address(rest, check.called) || !take_address(rest, check.reply_to)) return std::nullopt;
  if (!is_padding(rest)) return std::nullopt;
  return check;
}

std::optional<Checked> decode_checked(std::span<const std::byte> body) {
  constexpr std::size_t kFixed = kCheckedBytes - kCheckHeadBytes;
  if (body.size() < kFixed) return std::nullopt;
  const std::uint8_t what = load8(body.data() + 2);
  if (what > kUnknownPeer || load8(body.data() + 3) != 0) return std::nullopt;
  if (what == kUnknownPeer) {
    constexpr std::size_t kReply = kUnknownPeerReplyBytes - kCheckHeadBytes;
    if (body.size() != kReply) return std::nullopt;
    return Checked{
        .round = load_round(body.data()), .unknown_peer = true, .epoch = load64(body.data() + 12)};
  }
  if (!is_padding(body.subspan(kFixed))) return std::nullopt;
  Checked checked{.round = load_round(body.data()),
                  .arrived = {load8(body.data() + 12), load8(body.data() + 13)},
                  .elsewhere = load8(body.data() + 14)};
  const auto all = static_cast<RailBits>(checked.arrived[0] | checked.arrived[1]);
  if ((checked.elsewhere & ~all) != 0) return std::nullopt;
  checked.size = static_cast<CheckSize>(what);
  return checked;
}

}  // namespace pullman::wire
