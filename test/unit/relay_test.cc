// The parts of the relay that are pure: the head of its packets, routes, what is done with a
// packet, each origin's share of a neighbour, and its port.
#include "wire/relay.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "nic/address.h"
#include "nic/relay/relay_port.h"
#include "relay/forwarding.h"
#include "relay/routes.h"
#include "relay/share.h"

namespace pullman::relay {
namespace {

using Bytes = std::vector<std::byte>;

nic::Address at(const std::string& text) {
  std::string why;
  const auto address = nic::parse(text, 0, why);
  REQUIRE(address.has_value());
  return *address;
}

wire::RelayHead head_to(const std::string& to, std::vector<wire::RelayId> passed = {7}) {
  wire::RelayHead head;
  head.to = at(to);
  head.from = at("10.1.0.2:7100");
  head.hops = static_cast<std::uint8_t>(wire::kMaxHops + 1 - passed.size());
  head.passed_count = static_cast<std::uint8_t>(passed.size());
  std::copy(passed.begin(), passed.end(), head.passed.begin());
  return head;
}

Bytes packet_with(const wire::RelayHead& head, std::size_t payload = 3) {
  Bytes bytes(wire::relay_bytes(head) + payload, std::byte{0x5A});
  CHECK(wire::put_relay(bytes.data(), head) == bytes.data() + bytes.size() - payload);
  return bytes;
}

bool is_well_formed(std::span<const std::byte> bytes) {
  return wire::take_relay(bytes).has_value();
}

TEST_CASE("the head of a relayed packet comes back as it was, and the packet follows") {
  wire::RelayHead head = head_to("[fd00::2]:7100", {7, 8, ~wire::RelayId{0}});
  head.for_data = true;
  const Bytes bytes = packet_with(head);
  std::span<const std::byte> rest = bytes;

  const auto read = wire::take_relay(rest);

  REQUIRE(read.has_value());
  CHECK(rest.size() == 3);
  CHECK((read->for_data && read->hops == head.hops && read->passed_count == 3));
  CHECK((read->to == head.to && read->from == head.from));
  CHECK((read->has_passed(7) && read->has_passed(~wire::RelayId{0}) && !read->has_passed(9)));
  CHECK(bytes.size() - 3 <= wire::kMaxRelayBytes);
}

TEST_CASE("no part of a head is taken for one, and a head without a packet is none") {
  const Bytes bytes = packet_with(head_to("10.2.0.2:7100", {1, 2}), 1);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO(length);
    CHECK_FALSE(is_well_formed(std::span(bytes).first(length)));
  }
  CHECK(is_well_formed(bytes));
}

TEST_CASE("a head with a field out of its range is refused") {
  const Bytes good = packet_with(head_to("10.2.0.2:7100", {1, 2}));
  const auto with = [&](std::size_t place, unsigned value) {
    Bytes bytes = good;
    bytes[place] = static_cast<std::byte>(value);
    return bytes;
  };
  CHECK(is_well_formed(good));
  CHECK_FALSE(is_well_formed(with(0, 2)));  // version
  CHECK_FALSE(is_well_formed(with(1, 2)));  // channel
  CHECK_FALSE(is_well_formed(with(2, 0)));  // no hop left
  CHECK_FALSE(is_well_formed(with(2, 8)));  // more hops than there may be with two passed
  CHECK_FALSE(is_well_formed(with(2, 255)));
  CHECK_FALSE(is_well_formed(with(3, 0)));  // it has passed nobody, not even its origin
  CHECK_FALSE(is_well_formed(with(3, 9)));
  CHECK_FALSE(is_well_formed(with(3, 255)));
  CHECK_FALSE(is_well_formed(with(4, 255)));   // an opaque address
  CHECK_FALSE(is_well_formed(with(4, 0x84)));  // a relayed one
  CHECK_FALSE(is_well_formed(with(5, 5)));
  CHECK_FALSE(is_well_formed(with(12, 6)));
}

TEST_CASE("a packet ends where it is for, where it has been, and when it has no hop left") {
  const wire::RelayHead fresh = head_to("10.2.0.2:7100", {1});
  CHECK(step_for(fresh, 2, true) == Step::kHere);
  CHECK(step_for(fresh, 2, false) == Step::kOnward);
  CHECK(step_for(fresh, 1, false) == Step::kLoop);
  CHECK(step_for(fresh, 1, true) == Step::kLoop);
}

TEST_CASE("a packet passes as many connections as it may, and its record of them is complete") {
  wire::RelayHead head = head_to("10.2.0.2:7100", {1});
  wire::RelayId self = 2;
  for (; step_for(head, self, false) == Step::kOnward; ++self) head = passed_on(head, self);
  CHECK(step_for(head, self, false) == Step::kTooFar);
  CHECK(step_for(head, self, true) == Step::kHere);
  CHECK(self - 1 == wire::kMaxHops);
  for (wire::RelayId before = 1; before < self; ++before) CHECK(head.has_passed(before));
  CHECK(is_well_formed(packet_with(head)));
}

TEST_CASE("routes are read, the longest prefix first, and otherwise in their order") {
  std::string why;
  const auto routes = read_routes(
      "default via 10.1.0.9:1, 10.0.0.0/8 via 10.1.0.1:7100,on,  10.2.0.0/16  via 10.1.0.2:7100 ,"
      "10.3.0.0/16 via 10.1.0.3:7100",
      why);
  REQUIRE(routes.has_value());
  REQUIRE(routes->size() == 4);
  const auto via = [&](std::size_t i) { return nic::to_string((*routes)[i].via); };
  CHECK(via(0) == "10.1.0.2:7100");
  CHECK(via(1) == "10.1.0.3:7100");
  CHECK(via(2) == "10.1.0.1:7100");
  CHECK(via(3) == "10.1.0.9:1");
  CHECK_FALSE((*routes)[3].to.has_value());
  CHECK(read_routes("on", why)->empty());
}

TEST_CASE("what is no route is refused, and named") {
  for (const char* text :
       {"", "on,", "off", "10.2.0.0/16", "10.2.0.0/16 via", "via 10.1.0.1:7100",
        "10.2.0.0/33 via 10.1.0.1:7100", "10.2.0.0/16 by 10.1.0.1:7100", "default via 10.1.0.1",
        "default via relay:10.1.0.1:7100", "default via 10.1.0.1:70000"}) {
    std::string why;
    INFO(text);
    CHECK_FALSE(read_routes(text, why).has_value());
    CHECK_FALSE(why.empty());
  }
}

TEST_CASE("an origin is behind the neighbour that its last packet came from") {
  LearnedRoutes routes;
  const PeerId one{1, 1};
  const PeerId other{2, 1};
  CHECK_FALSE(routes.find(at("10.2.0.2:1")).has_value());
  routes.note(at("10.2.0.2:1"), one);
  routes.note(at("10.2.0.2:2"), other);
  CHECK(routes.find(at("10.2.0.2:1")) == one);
  routes.note(at("10.2.0.2:1"), other);
  CHECK(routes.find(at("10.2.0.2:1")) == other);
}

TEST_CASE("of more origins than are remembered those heard last are") {
  LearnedRoutes routes;
  const nic::Address first = at("10.2.0.2:1");
  for (std::size_t i = 0; i < LearnedRoutes::kMax + 10; ++i) {
    routes.note(nic::with_port(at("10.3.0.2:1"), static_cast<std::uint16_t>(i + 1)), PeerId{1, 1});
    routes.note(first, PeerId{2, 1});
  }
  CHECK(routes.size() == LearnedRoutes::kMax);
  CHECK(routes.find(first).has_value());
  CHECK_FALSE(routes.find(at("10.3.0.2:1")).has_value());
}

TEST_CASE("an origin that floods a neighbour leaves room for others, and all is bounded") {
  Share share;
  const nic::Address flood = at("10.2.0.2:1");
  const nic::Address other = at("10.3.0.2:1");
  while (share.admits(flood)) share.begin(Instant{}, flood);
  CHECK(share.under_way() <= Share::kMax / 2);
  std::size_t of_other = 0;
  for (; share.admits(other); ++of_other) share.begin(Instant{}, other);
  CHECK(of_other >= Share::kMax / 4);
  CHECK(share.under_way() <= Share::kMax);
  for (std::uint16_t port = 2; port < 2000; ++port) {
    if (share.admits(nic::with_port(flood, port))) {
      share.begin(Instant{}, nic::with_port(flood, port));
    }
  }
  CHECK(share.under_way() <= Share::kMax);
}

TEST_CASE("a neighbour has stalled while something is under way and nothing arrives") {
  using std::chrono::seconds;
  Share share;
  const nic::Address origin = at("10.2.0.2:1");
  const Instant begin(seconds(5));
  CHECK_FALSE(share.stalled(begin, seconds(1)));
  share.begin(begin, origin);
  share.begin(begin + seconds(1), origin);
  CHECK_FALSE(share.stalled(begin + seconds(1), seconds(1)));
  CHECK(share.stalled(begin + seconds(2), seconds(1)));
  share.end(begin + seconds(2), origin);
  CHECK_FALSE(share.stalled(begin + seconds(3), seconds(1)));
  share.end(begin + seconds(3), origin);
  CHECK_FALSE(share.stalled(begin + seconds(9), seconds(1)));
}

TEST_CASE("a relayed address is another than the one it is made of, as text too") {
  const nic::Address plain = at("10.2.0.2:7100");
  const nic::Address relayed = nic::relayed(plain);
  CHECK(nic::is_relayed(relayed));
  CHECK_FALSE(relayed == plain);
  CHECK(nic::unrelayed(relayed) == plain);
  CHECK(nic::to_string(relayed) == "relay:10.2.0.2:7100");
  CHECK(at("relay:10.2.0.2:7100") == relayed);
  CHECK(nic::port_of(relayed) == 7100);
  CHECK(nic::same_port(relayed, nic::relayed(at("10.2.0.2:7100"))));
  CHECK_FALSE(nic::same_port(relayed, plain));
  CHECK(nic::relayed(at("hex:0a0b")) == at("hex:0a0b"));
  std::string why;
  CHECK_FALSE(nic::parse("relay:relay:10.2.0.2:7100", 0, why).has_value());
}

TEST_CASE(
    "a relay's port keeps what it sends, takes no more than fits, and reaches no other kind") {
  nic::RelayPort port(nic::relayed(at("10.1.0.2:7100")), 100);
  CHECK(port.reach(at("10.2.0.2:7100")) == nic::Reach::kNone);
  CHECK(port.reach(nic::relayed(at("10.2.0.2:7100"))) == nic::Reach::kRouted);
  port.resolve(nic::relayed(at("10.2.0.2:7100")), 1);
  port.resolve(at("10.2.0.2:7100"), 2);
  std::vector<nic::PortEvent> events(3);
  REQUIRE(port.poll_events(events) == 2);
  CHECK(events[0].kind == nic::PortEvent::Kind::kResolved);
  CHECK(events[1].kind == nic::PortEvent::Kind::kResolveFailed);
  const Bytes head(40, std::byte{1});
  const Bytes payload(60, std::byte{2});
  const std::vector<nic::Outgoing> batch(100,
                                         {.head = head, .payload = payload, .to = events[0].to});
  CHECK((port.send(batch) == 100 && port.send(batch) == 100 && port.send(batch) == 56));
  std::size_t taken = 0;
  for (; port.has_sent(); ++taken) {
    port.take([&](const nic::Address& to, std::span<const std::byte> bytes) {
      CHECK(to == at("10.2.0.2:7100"));
      CHECK((bytes.size() == 100 && bytes[39] == std::byte{1} && bytes[40] == std::byte{2}));
    });
  }
  CHECK(taken == nic::RelayPort::kQueue);
}

TEST_CASE("a relay's port drops what arrives while all its buffers hold something or are lent") {
  nic::RelayPort port(nic::relayed(at("10.1.0.2:7100")), 100);
  CHECK_FALSE(port.arrive(Bytes(101)));
  std::size_t held = 0;
  while (port.arrive(Bytes(100))) ++held;
  CHECK(held == nic::RelayPort::kQueue);
  std::vector<nic::Incoming> batch(10);
  REQUIRE(port.receive(batch, 10) == 10);
  CHECK_FALSE(port.arrive(Bytes(1)));
  port.give_back(batch);
  CHECK(port.arrive(Bytes(1)));
}

}  // namespace
}  // namespace pullman::relay
