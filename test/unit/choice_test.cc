#include "nic/choice.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "nic/distance.h"
#include "nic/prefix.h"

namespace pullman::nic {
namespace {

using Names = std::vector<std::string>;

Device device(const std::string& name, const std::string& address, std::uint32_t mbps = 1000) {
  Device out;
  out.driver = "udp";
  out.name = name;
  out.address = parse_prefix(address).value().network;
  out.mbps = mbps;
  out.loopback = name == "lo";
  return out;
}

Device down(Device device) {
  device.up = false;
  return device;
}

Device carrying(Device device, std::size_t packet_bytes) {
  device.packet_bytes = packet_bytes;
  return device;
}

Device far(Device device, std::uint8_t distance) {
  device.distance = distance;
  return device;
}

Device of_provider(Device device, const std::string& provider) {
  device.driver = "fabric";
  device.provider = provider;
  return device;
}

// Returns what was chosen, as "eth0 10.0.0.1".
Names chosen(const Choice& choice) {
  Names out;
  for (const Device& device : choice.chosen) {
    out.push_back(device.name + " " + host_string(device.address));
  }
  return out;
}

Names chosen(const std::vector<Device>& devices, const Names& wanted, const Most& most = {}) {
  return chosen(choose_devices(devices, wanted, most));
}

std::map<std::string, std::string> reasons(const std::vector<Device>& devices, const Names& wanted,
                                           const Most& most = {}) {
  std::map<std::string, std::string> out;
  for (const auto& [device, reason] : choose_devices(devices, wanted, most).not_chosen) {
    out[device.name + " " + host_string(device.address)] = reason;
  }
  return out;
}

std::string problem(const std::vector<Device>& devices, const Names& wanted) {
  return choose_devices(devices, wanted, {}).problem;
}

const std::vector<Device> kUsual{device("lo", "127.0.0.1"),     device("lo", "::1"),
                                 device("eth0", "fe80::1"),     device("eth0", "fd00::1"),
                                 device("eth0", "10.20.0.1"),   device("eth1", "10.30.0.1"),
                                 device("eth1", "192.168.0.1"), down(device("eth2", "10.40.0.1"))};

TEST_CASE("all usable NICs are used by default, by IPv4 and by IPv6, and loopback is not") {
  CHECK(chosen(kUsual, {}) ==
        Names{"eth0 10.20.0.1", "eth0 fd00::1", "eth1 10.30.0.1", "eth1 192.168.0.1"});
}

TEST_CASE("every device that is not used has a reason") {
  CHECK(reasons(kUsual, {}) ==
        std::map<std::string, std::string>{
            {"lo 127.0.0.1", "loopback is used only if there is nothing else"},
            {"lo ::1", "loopback is used only if there is nothing else"},
            {"eth0 fe80::1", "eth0 is used through 10.20.0.1"},
            {"eth2 10.40.0.1", "it is down, or has no link"}});
}

TEST_CASE("a NIC whose packets are too short is not used, and the others are") {
  const std::vector<Device> devices{carrying(device("tun0", "10.10.0.1"), 815),
                                    carrying(device("eth0", "10.20.0.1"), 816)};
  const Most most{.least_packet = 816};

  CHECK(chosen(devices, {}, most) == Names{"eth0 10.20.0.1"});
  CHECK(reasons(devices, {}, most).at("tun0 10.10.0.1") ==
        "it carries packets of 815 bytes only, and 816 are needed");

  const Choice both = choose_devices(devices, {"tun0", "eth0"}, most);
  CHECK(chosen(both) == Names{"eth0 10.20.0.1"});
  CHECK(both.lacks ==
        Names{"NIC 'tun0' carries packets of 815 bytes only, and 816 are needed: raise "
              "its MTU by 1"});
  CHECK(choose_devices(devices, {"tun0"}, most).problem == both.lacks.front());
}

TEST_CASE("loopback is used if there is nothing else, or if it is asked for") {
  const std::vector<Device> lo{device("lo", "127.0.0.1"), device("lo", "::1")};

  CHECK(chosen(lo, {}) == Names{"lo 127.0.0.1", "lo ::1"});
  CHECK(chosen(kUsual, {"lo"}) == Names{"lo 127.0.0.1", "lo ::1"});
  CHECK(chosen(kUsual, {"::1"}) == Names{"lo ::1"});
  CHECK(chosen(kUsual, {"127.0.0.0/8"}) == Names{"lo 127.0.0.1"});
  CHECK(chosen(kUsual, {"0.0.0.0/0"}) ==
        Names{"eth0 10.20.0.1", "eth1 10.30.0.1", "eth1 192.168.0.1"});
  CHECK(chosen(kUsual, {"lo", "eth1"}) ==
        Names{"lo 127.0.0.1", "lo ::1", "eth1 10.30.0.1", "eth1 192.168.0.1"});
}

TEST_CASE("NICs are asked for by name, address or prefix, and come in that order") {
  CHECK(chosen(kUsual, {"eth1", "eth0"}) ==
        Names{"eth1 10.30.0.1", "eth1 192.168.0.1", "eth0 10.20.0.1", "eth0 fd00::1"});
  CHECK(chosen(kUsual, {"10.30.0.1"}) == Names{"eth1 10.30.0.1"});
  CHECK(chosen(kUsual, {"192.168.0.1"}) == Names{"eth1 192.168.0.1"});
  CHECK(chosen(kUsual, {"10.0.0.0/8"}) == Names{"eth0 10.20.0.1", "eth1 10.30.0.1"});
  CHECK(chosen(kUsual, {"fd00::/8"}) == Names{"eth0 fd00::1"});
  CHECK(chosen(kUsual, {"192.168.0.0/16", "10.0.0.0/8"}) ==
        Names{"eth1 192.168.0.1", "eth1 10.30.0.1", "eth0 10.20.0.1"});
  CHECK(reasons(kUsual, {"eth1"}).at("eth0 10.20.0.1") == "not among the NICs asked for");
}

TEST_CASE("each address that is asked for is used, several of one NIC side by side") {
  CHECK(chosen(kUsual, {"192.168.0.1", "eth0", "10.30.0.1"}) ==
        Names{"eth1 192.168.0.1", "eth1 10.30.0.1", "eth0 10.20.0.1", "eth0 fd00::1"});
}

TEST_CASE("a NIC is used by one address of each family, and by further ones while there is room") {
  const std::vector<Device> devices{device("eth0", "10.20.0.1"), device("eth0", "10.20.0.2"),
                                    device("eth0", "fd00::1"),   device("eth0", "fd00::2"),
                                    device("eth1", "10.30.0.1"), device("eth1", "10.30.0.2")};
  const auto most = [](std::size_t nics, std::size_t all) {
    return Most{.nics = nics, .addresses = 8, .devices = all};
  };

  CHECK(chosen(devices, {}, most(2, 8)) == Names{"eth0 10.20.0.1", "eth0 fd00::1", "eth0 10.20.0.2",
                                                 "eth0 fd00::2", "eth1 10.30.0.1",
                                                 "eth1 10.30.0.2"});
  CHECK(chosen(devices, {}, most(2, 4)) ==
        Names{"eth0 10.20.0.1", "eth0 fd00::1", "eth1 10.30.0.1", "eth1 10.30.0.2"});
  CHECK(chosen(devices, {}, most(3, 4)) ==
        Names{"eth0 10.20.0.1", "eth0 fd00::1", "eth1 10.30.0.1"});  // room for a third NIC
  CHECK(chosen(devices, {}, most(8, 8)) == Names{"eth0 10.20.0.1", "eth1 10.30.0.1"});
  CHECK(reasons(devices, {}, most(2, 4)).at("eth0 10.20.0.2") == "eth0 is used through 10.20.0.1");
}

TEST_CASE("a link-local address is used only if it, or its NIC that has no other, is named") {
  CHECK(chosen({device("eth0", "fe80::1")}, {"eth0"}) == Names{"eth0 fe80::1"});
  CHECK(chosen(kUsual, {"fe80::1"}) == Names{"eth0 fe80::1"});
  CHECK(chosen(kUsual, {"fe80::/10"}) == Names{"eth0 fe80::1"});
  CHECK(chosen(kUsual, {"::/0"}) == Names{"eth0 fd00::1"});
}

TEST_CASE("a NIC with link-local addresses only is not used unless it is named") {
  const std::vector<Device> devices{device("lo", "127.0.0.1"), device("veth1", "fe80::1"),
                                    device("usb0", "169.254.3.4"), device("eth0", "10.0.0.1")};

  CHECK(chosen(devices, {}) == Names{"eth0 10.0.0.1"});
  CHECK(reasons(devices, {}).at("veth1 fe80::1") ==
        "a link-local address, and no other: used if it is named");
  CHECK(chosen(devices, {"usb0"}) == Names{"usb0 169.254.3.4"});
  CHECK(chosen(devices, {"!eth0"}) == Names{"lo 127.0.0.1"});
  CHECK(problem({device("eth0", "fe80::1")}, {}) ==
        "there is no NIC with an address that is not link-local: name one to use it");
}

TEST_CASE("a link-local address is named with the number or the name of its interface") {
  Device here = device("e0", "fe80::1");
  Device there = device("e1", "fe80::1");
  here.address.bytes[21] = std::byte{2};  // the scope ID
  there.address.bytes[21] = std::byte{3};

  for (const char* const text : {"fe80::1%2", "fe80::1%e0", "FE80:0::1%e0"}) {
    CHECK(chosen({here, there}, {text}) == Names{"e0 fe80::1%2"});
  }
  CHECK(chosen({here, there}, {"fe80::1%e1"}) == Names{"e1 fe80::1%3"});
  CHECK(chosen({here, there}, {"fe80::1%e0", "!fe80::1%e0"}).empty());
  CHECK(problem({here, there}, {"fe80::1%e2"}).starts_with("there is no NIC 'fe80::1%e2'"));
}

Device standing(Device device, Standing standing, const std::string& nature) {
  device.standing = standing;
  device.nature = nature;
  return device;
}

TEST_CASE("bridges, their ports and tunnels are not used beside a NIC, unless they are named") {
  const std::vector<Device> devices{
      standing(device("docker0", "172.17.0.1", 10000), Standing::kInside, "a bridge"),
      device("e1", "10.78.1.1"),
      standing(device("e0", "10.78.0.1", 100), Standing::kOutside, "leads to the default route"),
      standing(device("tun0", "10.8.0.1"), Standing::kInside, "a tun")};

  CHECK(chosen(devices, {}) == Names{"e0 10.78.0.1", "e1 10.78.1.1"});
  CHECK(reasons(devices, {}).at("docker0 172.17.0.1") ==
        "a bridge: used if there is nothing else, or if it is named");
  CHECK(chosen(devices, {"10.0.0.0/8"}) == Names{"e0 10.78.0.1", "e1 10.78.1.1"});
  CHECK(chosen(devices, {"docker0", "e1"}) == Names{"docker0 172.17.0.1", "e1 10.78.1.1"});
  CHECK(chosen(devices, {"172.16.0.0/12", "e1"}) == Names{"docker0 172.17.0.1", "e1 10.78.1.1"});
}

TEST_CASE("a device within the host is used if there is nothing else but loopback") {
  const std::vector<Device> devices{
      device("lo", "127.0.0.1"),
      standing(device("docker0", "172.17.0.1"), Standing::kInside, "a bridge")};

  CHECK(chosen(devices, {}) == Names{"docker0 172.17.0.1"});
}

TEST_CASE("a name or prefix behind an exclamation mark is excluded") {
  CHECK(chosen(kUsual, {"!eth0"}) == Names{"eth1 10.30.0.1", "eth1 192.168.0.1"});
  CHECK(chosen(kUsual, {"!10.30.0.0/16"}) ==
        Names{"eth0 10.20.0.1", "eth0 fd00::1", "eth1 192.168.0.1"});
  CHECK(chosen(kUsual, {"10.0.0.0/8", "!eth1"}) == Names{"eth0 10.20.0.1"});
  CHECK(chosen(kUsual, {"!eth0", "!eth1"}) == Names{"lo 127.0.0.1", "lo ::1"});
  CHECK(chosen(kUsual, {"!docker0"}) == chosen(kUsual, {}));
  CHECK(reasons(kUsual, {"!10.30.0.0/16"}).at("eth1 10.30.0.1") == "'!10.30.0.0/16' excludes it");
}

TEST_CASE("the nearest NICs come first, then the fastest, then by name") {
  const std::vector<Device> devices{far(device("a", "10.0.1.1", 100'000), 21),
                                    device("c", "10.0.2.1", 1000), device("b", "10.0.3.1", 1000),
                                    far(device("d", "10.0.4.1", 10'000), 0)};

  CHECK(chosen(devices, {}) == Names{"d 10.0.4.1", "b 10.0.3.1", "c 10.0.2.1", "a 10.0.1.1"});
  CHECK(chosen(devices, {}, {.nics = 2}) == Names{"d 10.0.4.1", "b 10.0.3.1"});
  CHECK(reasons(devices, {}, {.nics = 2}).at("a 10.0.1.1") == "2 NICs are enough: d, b come first");
  CHECK(reasons(devices, {}, {.nics = 1}).at("a 10.0.1.1") ==
        "one NIC is enough, and d comes first");
}

TEST_CASE("four NICs are used at most, and one is if that is all that may be opened") {
  std::vector<Device> six;
  for (int i = 0; i < 6; ++i) {
    six.push_back(device(fmt::format("eth{}", i), fmt::format("10.0.{}.1", i)));
  }

  CHECK(chosen(six, {}).size() == 4);
  CHECK(chosen(six, {"10.0.0.0/8"}).size() == 4);
  CHECK(chosen(kUsual, {}, {.nics = 1, .addresses = 1}) == Names{"eth0 10.20.0.1"});
}

TEST_CASE("NICs that bypass the kernel displace those that do not, unless these are named") {
  const std::vector<Device> devices{of_provider(device("eth0", "10.0.0.1", 100'000), "udp"),
                                    of_provider(device("usnic_0", "10.0.1.1"), "usnic")};

  CHECK(chosen(devices, {}) == Names{"usnic_0 10.0.1.1"});
  CHECK(reasons(devices, {}).at("eth0 10.0.0.1") == "usnic_0 bypasses the kernel");
  CHECK(chosen(devices, {"eth0"}) == Names{"eth0 10.0.0.1"});
  CHECK(chosen({devices[0], down(devices[1])}, {}) == Names{"eth0 10.0.0.1"});
}

TEST_CASE("a NIC that is asked for and cannot be had is reported by a sentence") {
  const std::vector<Device> one{device("eth0", "10.0.0.1")};

  CHECK(problem(one, {"eth7"}) ==
        "there is no NIC 'eth7' for this driver; there are: eth0 (10.0.0.1)");
  CHECK(problem(one, {"eth0", "11.0.0.0/8"}) ==
        "there is no NIC '11.0.0.0/8' for this driver; there are: eth0 (10.0.0.1)");
  CHECK(problem(kUsual, {"eth2"}) == "NIC 'eth2' is down, or has no link: ip link set eth2 up");
  CHECK(problem(one, {"10.0.0.0/33"}) ==
        "'10.0.0.0/33' is no prefix: write ADDRESS/BITS, as in 10.0.0.0/8");
  CHECK(problem(one, {"!10.0.0/8"}) ==
        "'10.0.0/8' is no prefix: write ADDRESS/BITS, as in 10.0.0.0/8");
  CHECK(problem({}, {}) ==
        "there is no NIC this driver can use: none has an address, a link and an MTU "
        "that is large enough");
  CHECK(problem(one, {"!eth0"}) ==
        "there is no NIC this driver can use: none that is not excluded has an address, a "
        "link and an MTU that is large enough");
  CHECK(choose_devices(kUsual, {"eth7"}, {}).chosen.empty());
  CHECK(choose_devices(kUsual, {"eth7"}, {}).not_chosen.size() == kUsual.size());
}

TEST_CASE("a NIC that is asked for and is down is left out if another one is up") {
  const Names wanted = GENERATE(Names{"eth2", "eth1"}, Names{"eth1", "eth2"},
                                Names{"10.40.0.0/16", "eth1"}, Names{"10.40.0.1", "eth1"});
  const Choice choice = choose_devices(kUsual, wanted, {.nics = 4, .addresses = 1});

  CHECK(chosen(choice) == Names{"eth1 10.30.0.1"});
  CHECK(choice.problem.empty());
  REQUIRE(choice.lacks.size() == 1);
  CHECK(choice.lacks.front().ends_with("is down, or has no link: ip link set eth2 up"));
  CHECK(problem(kUsual, {"eth2", "10.40.0.1"}) ==
        "NIC 'eth2' is down, or has no link: ip link set eth2 up");
}

TEST_CASE("a prefix contains the addresses that begin with it") {
  const auto in = [](const char* prefix, const char* address) {
    return contains(*parse_prefix(prefix), parse_prefix(address)->network);
  };

  CHECK(in("10.0.0.0/8", "10.20.0.1"));
  CHECK(!in("10.0.0.0/8", "11.0.0.1"));
  CHECK(in("10.20.30.0/23", "10.20.31.255"));
  CHECK(!in("10.20.30.0/23", "10.20.32.0"));
  CHECK(in("10.20.30.255/23", "10.20.31.1"));
  CHECK(in("10.0.0.1", "10.0.0.1"));
  CHECK(!in("10.0.0.1", "10.0.0.2"));
  CHECK(in("0.0.0.0/0", "255.255.255.255"));
  CHECK(in("::/0", "fd00::1"));
  CHECK(!in("::/0", "10.0.0.1"));
  CHECK(in("fd00::/65", "fd00::7fff:0:0:0"));
  CHECK(!in("fd00::/65", "fd00::8000:0:0:0"));
  CHECK(in("fd00::1/128", "fd00::1"));
}

TEST_CASE("a malformed prefix is rejected") {
  for (const char* text :
       {"", "/", "/8", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/8x", "10.0.0.0/33", "10.0.0.0/-1",
        "fd00::/129", "10.0.0/8", "eth0", "eth0/8", "1 0.0.0.1"}) {
    CAPTURE(text);
    CHECK(!parse_prefix(text));
  }
}

// A machine that hwloc makes up from a description.
class Machine {
 public:
  explicit Machine(const char* description) {
    hwloc_topology_t raw = nullptr;
    REQUIRE(hwloc_topology_init(&raw) == 0);
    topology_.reset(raw);
    REQUIRE(hwloc_topology_set_synthetic(raw, description) == 0);
    REQUIRE(hwloc_topology_load(raw) == 0);
  }

  // Sets the latencies from node i to node j, row by row.
  void say(std::vector<hwloc_uint64_t> latencies) {
    std::vector<hwloc_obj_t> nodes;
    hwloc_obj_t node = nullptr;
    while ((node = hwloc_get_next_obj_by_type(topology_.get(), HWLOC_OBJ_NUMANODE, node))) {
      nodes.push_back(node);
    }
    const unsigned long kind = HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY;
    void* const table = hwloc_distances_add_create(topology_.get(), "NUMALatency", kind, 0);
    REQUIRE(hwloc_distances_add_values(topology_.get(), table, static_cast<unsigned>(nodes.size()),
                                       nodes.data(), latencies.data(), 0) == 0);
    REQUIRE(hwloc_distances_add_commit(topology_.get(), table, 0) == 0);
  }

  // Returns the distance from the processors ("0-1,3") to the node.
  int distance(const char* processors, int node) const {
    const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> set(hwloc_bitmap_alloc(),
                                                                        hwloc_bitmap_free);
    hwloc_bitmap_list_sscanf(set.get(), processors);
    return distance_between(topology_.get(), set.get(), node);
  }

 private:
  struct Free {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
  };
  std::unique_ptr<hwloc_topology, Free> topology_;
};

TEST_CASE("a device is as far as its node is from the nearest processor of the process") {
  Machine machine("numa:3 core:2 pu:1");
  machine.say({10, 21, 31, 21, 10, 16, 31, 16, 10});

  CHECK(machine.distance("0", 0) == 0);
  CHECK(machine.distance("0-1", 1) == 11);
  CHECK(machine.distance("0-1", 2) == 21);
  CHECK(machine.distance("0,2", 2) == 6);
  CHECK(machine.distance("0-5", 2) == 0);
}

TEST_CASE("without a distance table another node is farther than the process's own") {
  const Machine machine("numa:2 core:2 pu:1");

  CHECK(machine.distance("0-1", 0) == 0);
  CHECK(machine.distance("0-1", 1) > 0);
}

TEST_CASE("a node that is not known counts as near") {
  const Machine machine("numa:2 core:2 pu:1");

  CHECK(machine.distance("0", -1) == 0);
  CHECK(machine.distance("0", 7) == 0);
  CHECK(machine.distance("", 1) == 0);
}

}  // namespace
}  // namespace pullman::nic
