// What users may configure, and how a value that makes no sense is reported.
#include "pullman/config.h"

#include <catch2/catch.hpp>

#include "complaint.h"
#include "nic/address.h"
#include "pullman/status.h"
#include "variable.h"
#include "wire/header.h"

namespace pullman {
namespace {

std::string complaint(const Config& config) {
  return complaint_of([&] { config.validate(); });
}

}  // namespace

TEST_CASE("the defaults are in range") {
  CHECK(complaint(Config{}).empty());
}

TEST_CASE("an option out of range is named with its value and its range") {
  Config config;
  config.send_window = 5000;
  CHECK(complaint(config) == "send_window = 5000 packets is out of range: 16 to 4096");
  config = {};
  config.ack_delay = std::chrono::milliseconds(-1);
  CHECK_THAT(complaint(config), Catch::Contains("ack_delay"));
  config.ack_delay = std::chrono::microseconds(8001);
  CHECK(complaint(config) == "ack_delay = 8001 us is out of range: 0 to 8000");
  config = {};
  config.max_peers = 1'000'000;
  CHECK_THAT(complaint(config), Catch::Contains("at least 4096 each"));
  config = {};
  config.nics = {""};
  CHECK_THAT(complaint(config), Catch::Contains("empty name"));
}

TEST_CASE("the longest ACK delay fits a hold time, wire.md 2.8") {
  Config config;
  config.ack_delay = std::chrono::milliseconds(8);
  CHECK(complaint(config).empty());
  CHECK(config.ack_delay < std::chrono::nanoseconds(wire::kHoldUnknown * wire::kHoldUnitNs));
}

TEST_CASE("variables override defaults, and a bad one is named") {
  const Variable window("PULLMAN_SEND_WINDOW", "128");
  const Variable nics("PULLMAN_NICS", "eth0,10.0.0.1");
  const Variable delay("PULLMAN_ACK_DELAY_US", "70");
  const Config config = Config::from_environment();
  CHECK(config.send_window == 128);
  CHECK(config.nics == std::vector<std::string>{"eth0", "10.0.0.1"});
  CHECK(config.ack_delay == std::chrono::microseconds(70));

  for (const char* bad : {"", "x", "12x", "-1", "99999999999999999999", "8"}) {
    const Variable wrong("PULLMAN_SEND_WINDOW", bad);
    CHECK_THROWS_WITH(Config::from_environment(), Catch::Contains("PULLMAN_SEND_WINDOW"));
  }
}

TEST_CASE("routes of the relay come from a variable, and what is none is named") {
  const Variable relay("PULLMAN_RELAY", "10.2.0.0/16 via 10.1.0.1:7100, default via 10.1.0.2:7100");
  CHECK(Config::from_environment().relay.starts_with("10.2.0.0/16 via"));
  const Variable wrong("PULLMAN_RELAY", "10.2.0.0/16");
  CHECK_THROWS_WITH(Config::from_environment(), Catch::Contains("'10.2.0.0/16' is no route"));
}

TEST_CASE("every status has a name and a sentence") {
  for (int i = 0; i <= static_cast<int>(Status::kIncompatible); ++i) {
    CHECK(std::string(to_sentence(static_cast<Status>(i))).size() > 3);
    CHECK(std::string(name(static_cast<Status>(i))) != "?");
  }
}

TEST_CASE("addresses are read as people write them, and written back") {
  std::string why;
  for (const char* text : {"10.0.0.1:7100", "[fe80::1%2]:7100", "[::1]:1", "hex:0a1bff"}) {
    const auto address = nic::parse(text, 0, why);
    REQUIRE(address.has_value());
    CHECK(nic::to_string(*address) == text);
  }
  CHECK(nic::to_string(*nic::parse("10.1.2.3", 7100, why)) == "10.1.2.3:7100");
  for (const char* bad : {"", ":7100", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:x", "[::1",
                          "hex:1", "hex:", "hex:zz", "[::1]x"}) {
    CAPTURE(bad);
    CHECK_FALSE(nic::parse(bad, 7100, why).has_value());
    CHECK_FALSE(why.empty());
  }
}

TEST_CASE("an IPv6 port is the same whatever scope a host gives it") {
  std::string why;
  const auto here = *nic::parse("[fe80::1%2]:7100", 0, why);
  const auto there = *nic::parse("[fe80::1%3]:7100", 0, why);
  CHECK(nic::same_port(here, there));
  CHECK_FALSE(nic::same_port(here, nic::with_port(there, 7101)));
}

TEST_CASE("sticky rails and the number of NICs are read from the environment") {
  CHECK_FALSE(Config::from_environment().sticky_rails);
  const Variable sticky("PULLMAN_STICKY_RAILS", "1");
  const Variable nics("PULLMAN_MAX_NICS", "8");
  CHECK(Config::from_environment().sticky_rails);
  CHECK(Config::from_environment().max_nics == 8);
  Config config;
  config.max_nics = 9;
  CHECK_THAT(complaint(config), Catch::Contains("1 to 8"));
}

TEST_CASE("a variable for a key that is empty is refused, and does not mean that there is none") {
  for (const char* name : {"PULLMAN_KEY_FILE", "PULLMAN_KEY"}) {
    const Variable variable(name, "");
    CHECK_THROWS_AS(Config::from_environment(), Error);
  }
}

TEST_CASE("the environment says how packets are protected") {
  const Variable key("PULLMAN_KEY", "some words");
  CHECK(Config::from_environment().security == Config::Security::kDefault);
  const Variable encrypt("PULLMAN_SECURITY", "encrypt");
  CHECK(Config::from_environment().security == Config::Security::kEncrypt);
  const Variable other("PULLMAN_SECURITY", "on");
  CHECK_THROWS_AS(Config::from_environment(), Error);
}

TEST_CASE("a trace has a file, a size, and a signal that a program can take") {
  const Variable file("PULLMAN_TRACE", "/tmp/t.pcapng");
  const Variable bytes("PULLMAN_TRACE_BYTES", "4096");
  const Variable signal("PULLMAN_TRACE_SIGNAL", "USR2");
  const Config config = Config::from_environment();
  CHECK(config.trace == "/tmp/t.pcapng");
  CHECK(config.trace_bytes == 4096);
  CHECK(config.trace_signal == "USR2");
  for (const char* other : {"KILL", "12", "usr2"}) {
    Config wrong;
    wrong.trace_signal = other;
    CHECK_THAT(complaint(wrong), Catch::Contains("USR1"));
  }
  Config alone;
  alone.trace_signal = "USR2";
  CHECK_THAT(complaint(alone), Catch::Contains("PULLMAN_TRACE"));
}

}  // namespace pullman
