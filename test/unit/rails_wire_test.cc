// wire/rails.h and the rail in the header: what two ends tell each other about their rails.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "wire/header.h"
#include "wire/nics.h"
#include "wire/rails.h"

namespace pullman::wire {
namespace {

TEST_CASE("a header names its rail") {
  const std::uint8_t rail = GENERATE(std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{7});
  PacketHeader header;
  header.length = kHeaderBytes;
  header.flags = kFlagAck;
  header.rail = rail;
  std::array<std::byte, kHeaderBytes> bytes;
  encode(header, bytes.data());
  PacketHeader read;
  REQUIRE(decode(bytes, read) == Verdict::kAccepted);
  CHECK(read.rail == rail);
  CHECK(read.flags == kFlagAck);
}

TEST_CASE("ways survive the wire, and are refused if they contradict themselves") {
  Ways ways{.mine = 2, .theirs = 3, .home = 1, .home_there = 2, .reach = {}};
  ways.reach[0] = {2, 0, 1};
  ways.reach[1] = {0, 2, 1};
  std::vector<std::byte> body(kMaxWaysBytes);
  body.resize(put_ways(body.data(), ways));
  FrameReader reader(body);
  Frame frame;
  REQUIRE(reader.next(frame));
  REQUIRE(frame.type == FrameType::kWays);
  const auto read = decode_ways(frame.data);
  REQUIRE(read.has_value());
  CHECK(read->mine == 2);
  CHECK(read->theirs == 3);
  CHECK(read->reach == ways.reach);
  CHECK(read->home == 1);
  CHECK(read->home_there == 2);

  std::vector<std::byte> data(frame.data.begin(), frame.data.end());
  CHECK_FALSE(decode_ways(std::span(data).first(1)).has_value());
  CHECK_FALSE(decode_ways(std::span(data).first(data.size() - 1)).has_value());
  data.back() = std::byte{3};
  CHECK_FALSE(decode_ways(data).has_value());
  data.assign(4 + 9 * 9, std::byte{0});
  data[0] = data[1] = std::byte{9};
  CHECK_FALSE(decode_ways(data).has_value());
}

TEST_CASE(
    "a list of NICs survives the wire, and is refused if it is cut, too long or contradicts "
    "itself") {
  const auto nic = [](std::uint8_t host) {
    WireAddress address{.kind = 4, .length = 6};
    address.bytes[3] = std::byte{host};
    return NicInfo{.command_packet_bytes = 816,
                   .data_packet_bytes = 1472,
                   .command = address,
                   .data = address};
  };
  NicList list{.count = 0xfffffffe,
               .asks = true,
               .no_ways = true,
               .host = 77,
               .nic_count = 2,
               .rail_count = 1};
  list.rails[0] = {.rail = 7, .mine = 1, .theirs = 3};
  list.nics[0] = nic(1);
  list.nics[1] = nic(2);
  std::vector<std::byte> body(nics_bytes(list));
  REQUIRE(put_nics(body.data(), list) == body.size());
  FrameReader reader(body);
  Frame frame;
  REQUIRE(reader.next(frame));
  REQUIRE(frame.type == FrameType::kNics);
  const auto read = decode_nics(frame.data);
  REQUIRE(read.has_value());
  CHECK(read->count == 0xfffffffe);
  CHECK(list_count(body) == 0xfffffffe);
  CHECK_FALSE(list_count(frame.data).has_value());
  CHECK(read->asks);
  CHECK(read->no_ways);
  CHECK(read->host == 77);
  REQUIRE(read->nic_count == 2);
  CHECK(read->nics[1].command == list.nics[1].command);
  REQUIRE(read->rail_count == 1);
  CHECK(read->rails[0].rail == 7);
  CHECK(read->rails[0].theirs == 3);

  const std::vector<std::byte> good(frame.data.begin(), frame.data.end());
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK_FALSE(decode_nics(std::span(good).first(length)).has_value());
  }
  const auto refused_with = [&](std::size_t at, unsigned value) {
    auto bad = good;
    bad[at] = static_cast<std::byte>(value);
    return !decode_nics(bad).has_value();
  };
  CHECK(refused_with(4, 4));  // a flag that does not exist
  CHECK(refused_with(5, 0));  // no NIC
  CHECK(refused_with(5, 9));
  CHECK(refused_with(6, 8));   // more rails than there may be
  CHECK(refused_with(15, 0));  // rail 0 is the one they met on
  CHECK(refused_with(15, 8));
  CHECK(refused_with(16, 2));  // a NIC that is not listed
  CHECK(refused_with(17, 8));
  auto longer = good;
  longer.push_back(std::byte{0});
  CHECK_FALSE(decode_nics(longer).has_value());
}

TEST_CASE("a rail's report survives the wire, and a malformed one is refused") {
  std::array<std::byte, kRailBytes> body;
  REQUIRE(put_rail(body.data(), {.rail = 3, .said = RailSaid::kLeft, .count = 65535}) ==
          kRailBytes);
  const auto read_back = [&] {
    FrameReader reader(body);
    Frame frame;
    REQUIRE(reader.next(frame));
    return read_rail(frame);
  };
  const auto report = read_back();
  REQUIRE(report.has_value());
  CHECK(report->rail == 3);
  CHECK(report->said == RailSaid::kLeft);
  CHECK(report->count == 65535);
  body[5] = std::byte{3};
  REQUIRE(read_back().has_value());
  CHECK(read_back()->said == RailSaid::kKeptOut);
  body[5] = std::byte{4};
  CHECK(read_back()->said == RailSaid::kSilent);
  body[5] = std::byte{5};
  CHECK_FALSE(read_back().has_value());
  body[5] = std::byte{0};
  body[4] = std::byte{8};
  CHECK_FALSE(read_back().has_value());
}

}  // namespace
}  // namespace pullman::wire
