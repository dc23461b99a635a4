// nic/shared_subnet.h: the advice on NICs in one subnet.
#include <catch2/catch.hpp>

#include "nic/shared_subnet.h"

namespace pullman::nic {
namespace {

using Catch::Contains;

TEST_CASE(
    "NICs on one subnet that answer ARP for themselves only, and accept all, need no advice") {
  const ArpSettings good{.arp_ignore = GENERATE(1, 2), .rp_filter = GENERATE(0, 2)};

  CHECK(subnet_advice({"e0", "e1"}, {good, good}).empty());
}

TEST_CASE(
    "for NICs on one subnet the advice names the setting that lets one take another's packets") {
  const ArpSettings good{.arp_ignore = 1, .rp_filter = 2};

  const std::string arp = subnet_advice({"e0", "e1"}, {good, {.arp_ignore = 0, .rp_filter = 0}});
  CHECK_THAT(arp, Contains("e0 and e1") && Contains("arp_ignore=1"));
  CHECK_THAT(arp, !Contains("rp_filter"));

  const std::string strict = subnet_advice({"e0", "e1"}, {good, {.arp_ignore = 1, .rp_filter = 1}});
  CHECK_THAT(strict, Contains("rp_filter=2") && !Contains("arp_ignore"));

  const std::string both = subnet_advice({"e0", "e1"}, {{}, {.arp_ignore = 0, .rp_filter = 1}});
  CHECK_THAT(both, Contains("rp_filter=2") && Contains("arp_ignore=1"));
}

}  // namespace
}  // namespace pullman::nic
