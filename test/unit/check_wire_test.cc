// wire/check.h: the questions and answers of a connectivity check (wire.md 9.8).
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "wire/check.h"

namespace pullman::wire {
namespace {

constexpr CheckRound kRound{.count = 0x0102, .token = 0x1122334455667788};

WireAddress some_address(std::size_t first = 10) {
  WireAddress address{.kind = 4, .length = 6};
  for (std::size_t i = 0; i < 6; ++i) address.bytes[i] = static_cast<std::byte>(first + i);
  return address;
}

Check some_check(CheckSize size = CheckSize::kSmallest) {
  return {.round = kRound,
          .size = size,
          .epoch = 0xABCDEF,
          .called = some_address(20),
          .reply_to = some_address()};
}

Frame frame_in(std::span<const std::byte> packet, FrameType type) {
  FrameReader reader(packet);
  Frame frame;
  REQUIRE(reader.next(frame));
  REQUIRE(frame.type == type);
  REQUIRE(frame.data.size() == packet.size() - kCheckHeadBytes);
  Frame more;
  REQUIRE_FALSE(reader.next(more));
  REQUIRE(reader.ok());
  return frame;
}

std::vector<std::byte> encoded(const Check& check, std::size_t padding) {
  std::vector<std::byte> bytes(least_check_bytes(check.called, check.reply_to) + padding,
                               std::byte{0xEE});
  put_check(bytes, check);
  return bytes;
}

TEST_CASE("a CHECK survives the wire, whatever it is padded to") {
  const std::size_t padding = GENERATE(0u, 1u, 1400u, 60'000u);
  const CheckSize size = GENERATE(CheckSize::kSmallest, CheckSize::kLargest);
  const auto bytes = encoded(some_check(size), padding);

  const auto read = decode_check(frame_in(bytes, FrameType::kCheck).data);

  REQUIRE(read.has_value());
  CHECK(read->round == kRound);
  CHECK(read->size == size);
  CHECK(read->epoch == 0xABCDEF);
  CHECK(read->called == some_address(20));
  CHECK(read->reply_to == some_address());
}

TEST_CASE("a CHECK's fields lie where wire.md 9.8 says") {
  const auto bytes = encoded(some_check(CheckSize::kLargest), 2);

  const std::vector<int> expected{12, 0,    0,    38,                            // head
                                  1,  2,    1,    0,                             // round, size
                                  17, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,  // token
                                  0,  0,    0,    0,    0,    0xAB, 0xCD, 0xEF,  // epoch
                                  4,  6,    20,   21,   22,   23,   24,   25,    // called
                                  4,  6,    10,   11,   12,   13,   14,   15,    // reply to
                                  0,  0};                                        // padding
  REQUIRE(bytes.size() == expected.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) CHECK(static_cast<int>(bytes[i]) == expected[i]);
}

TEST_CASE("a CHECK that contradicts itself is refused") {
  const auto bytes = encoded(some_check(), 3);
  std::vector<std::byte> body(bytes.begin() + kCheckHeadBytes, bytes.end());
  REQUIRE(decode_check(body).has_value());
  const auto with = [&](std::size_t at, int value) {
    auto changed = body;
    changed[at] = static_cast<std::byte>(value);
    return decode_check(changed);
  };

  CHECK_FALSE(with(2, 2).has_value());                 // no such size
  CHECK_FALSE(with(3, 1).has_value());                 // reserved
  CHECK_FALSE(with(kCheckFixedBytes, 5).has_value());  // no such kind of address
  CHECK_FALSE(with(kCheckFixedBytes + 1, 7).has_value());
  CHECK_FALSE(with(kCheckFixedBytes + 8, 5).has_value());
  CHECK_FALSE(with(body.size() - 1, 1).has_value());  // padding is zero
  CHECK_FALSE(with(body.size() - 3, 1).has_value());
  for (std::size_t size = 0; size + 3 < body.size(); ++size) {
    CHECK_FALSE(decode_check(std::span(body).first(size)).has_value());
  }
}

TEST_CASE("a CHECKED survives the wire with its sender and what has arrived") {
  const std::size_t padding = GENERATE(0u, 5u, 1400u);
  std::vector<std::byte> bytes(kCheckedBytes + padding, std::byte{0xEE});
  put_checked(
      bytes,
      {.round = kRound, .size = CheckSize::kLargest, .arrived = {0x81, 0x02}, .elsewhere = 0x82});
  auto read = decode_checked(frame_in(bytes, FrameType::kChecked).data);
  REQUIRE(read.has_value());
  CHECK(read->round == kRound);
  CHECK(read->size == CheckSize::kLargest);
  CHECK_FALSE(read->unknown_peer);
  CHECK(read->arrived == RailsBySize{0x81, 0x02});
  CHECK(read->elsewhere == 0x82);

  bytes.resize(kUnknownPeerReplyBytes);
  put_checked(bytes, {.round = kRound, .unknown_peer = true, .epoch = 0x1122334455667788});
  read = decode_checked(frame_in(bytes, FrameType::kChecked).data);
  REQUIRE(read.has_value());
  CHECK(read->unknown_peer);
  CHECK(read->epoch == 0x1122334455667788);
}

TEST_CASE("an unknown-peer reply with padding, or cut short, is refused, wire.md 9.10") {
  std::vector<std::byte> bytes(kUnknownPeerReplyBytes + 1);
  put_checked(bytes, {.round = kRound, .unknown_peer = true, .epoch = 1});
  const auto body = std::span(bytes).subspan(kCheckHeadBytes);

  CHECK(decode_checked(body.first(body.size() - 1)).has_value());
  CHECK_FALSE(decode_checked(body).has_value());
  CHECK_FALSE(decode_checked(body.first(body.size() - 2)).has_value());
}

TEST_CASE("a CHECKED that contradicts itself is refused") {
  std::vector<std::byte> bytes(kCheckedBytes + 1);
  put_checked(bytes, {.round = kRound, .arrived = {1, 1}});
  std::vector<std::byte> body(bytes.begin() + kCheckHeadBytes, bytes.end());
  const auto with = [&](std::size_t at, int value) {
    auto changed = body;
    changed[at] = static_cast<std::byte>(value);
    return decode_checked(changed);
  };

  CHECK_FALSE(with(2, 3).has_value());
  CHECK_FALSE(with(3, 1).has_value());
  CHECK(with(14, 1).has_value());
  CHECK_FALSE(with(14, 2).has_value());  // nothing has arrived there
  CHECK_FALSE(with(body.size() - 1, 1).has_value());
  CHECK(decode_checked(std::span(body).first(body.size() - 1)).has_value());
  CHECK_FALSE(decode_checked(std::span(body).first(body.size() - 2)).has_value());
  CHECK_FALSE(decode_checked({}).has_value());
}

// An unproved caller must not be sent more than it sent: no amplification.
TEST_CASE("a CHECK is always longer than a CHECKED") {
  const WireAddress shortest{.kind = 255, .length = 1};
  CHECK(least_check_bytes(shortest, shortest) > kCheckedBytes);
  CHECK(least_check_bytes(shortest, shortest) > kUnknownPeerReplyBytes);
}

}  // namespace
}  // namespace pullman::wire
