#include "nic/standing.h"

#include <catch2/catch.hpp>

namespace pullman::nic {
namespace {

using Links = std::vector<LinkFacts>;

LinkFacts link(int index, const std::string& name, const std::string& kind = "") {
  LinkFacts out;
  out.index = index;
  out.name = name;
  out.kind = kind;
  return out;
}

LinkFacts hardware(LinkFacts link) {
  link.hardware = true;
  return link;
}

LinkFacts port_of(int master, LinkFacts link) {
  link.master = master;
  return link;
}

LinkFacts upon(int lower, LinkFacts link) {
  link.lower = lower;
  return link;
}

LinkFacts default_by(LinkFacts link) {
  link.default_route = true;
  return link;
}

void check(const Links& links, const std::string& name, Standing standing, const std::string& why) {
  CAPTURE(name);
  const Judged judged = judge(links, name);
  CHECK(judged.standing == standing);
  CHECK(judged.why == why);
}

TEST_CASE("a host's NICs rank before Docker's devices and its tunnels") {
  const Links links{hardware(link(2, "eth0")),
                    default_by(link(3, "e0", "veth")),
                    link(4, "e1", "veth"),
                    link(5, "docker0", "bridge"),
                    port_of(5, link(6, "vethx", "veth")),
                    link(7, "wg0", "wireguard"),
                    link(8, "dummy0", "dummy")};

  check(links, "eth0", Standing::kOutside, "has hardware");
  check(links, "e0", Standing::kOutside, "leads to the default route");
  check(links, "e1", Standing::kPlain, "a veth");
  check(links, "docker0", Standing::kInside, "a bridge");
  check(links, "vethx", Standing::kInside, "a port of docker0");
  check(links, "wg0", Standing::kInside, "a wireguard");
  check(links, "dummy0", Standing::kInside, "a dummy");
}

TEST_CASE("a device on hardware ranks as that: a vlan of a bond, a bridge with a NIC in it") {
  const Links links{port_of(4, hardware(link(2, "eth0"))),
                    port_of(4, hardware(link(3, "eth1"))),
                    link(4, "bond0", "bond"),
                    upon(4, link(5, "bond0.7", "vlan")),
                    port_of(7, hardware(link(6, "eth2"))),
                    link(7, "br0", "bridge"),
                    upon(7, link(8, "vx", "vxlan"))};

  check(links, "bond0", Standing::kOutside, "a bond on hardware");
  check(links, "bond0.7", Standing::kOutside, "a vlan on hardware");
  check(links, "br0", Standing::kOutside, "a bridge on hardware");
  check(links, "eth0", Standing::kInside, "a port of bond0");
  check(links, "eth2", Standing::kInside, "a port of br0");
  check(links, "vx", Standing::kInside, "a vxlan");
}

TEST_CASE("a device of a VRF is no port, and one in a loop of links or unknown is plain") {
  const Links links{link(1, "blue", "vrf"), port_of(1, hardware(link(2, "eth0"))),
                    upon(4, link(3, "a", "vlan")), upon(3, link(4, "b", "vlan"))};

  check(links, "eth0", Standing::kOutside, "has hardware");
  check(links, "a", Standing::kPlain, "a vlan");
  check(links, "usnic_0", Standing::kPlain, "");
}

}  // namespace
}  // namespace pullman::nic
