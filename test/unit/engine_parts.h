// Parts for unit tests of the engine's components: NICs without a network, and a table of peers
// without an engine.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nics/nic_ports.h"
#include "engine/nics/nic_table.h"
#include "engine/resources.h"

namespace pullman::engine {

inline nic::Address address_of_kind(std::uint8_t kind, std::uint8_t length, std::uint8_t host) {
  nic::Address address;
  address.kind = kind;
  address.length = length;
  address.bytes[0] = std::byte{host};
  return address;
}
// The port is 0 until a FakePort sets it.
inline nic::Address ipv4(std::uint8_t host) {
  return address_of_kind(4, 6, host);
}
inline nic::Address ipv6(std::uint8_t host) {
  return address_of_kind(6, 22, host);
}
inline nic::Address longest_opaque(std::uint8_t host) {
  return address_of_kind(255, wire::kMaxAddressBytes, host);
}

// Records what it is asked to do, and receives nothing.
class FakePort final : public nic::Port {
 public:
  struct Sent {
    std::vector<std::byte> bytes;
    nic::Destination to;
  };
  struct Asked {
    nic::Address address;
    std::uint64_t cookie;
  };

  FakePort(const nic::Address& host, ChannelKind kind) : address_(host) {
    if (host.kind != 255) address_ = nic::with_port(host, 7000 + static_cast<std::uint16_t>(kind));
  }

  std::size_t send(std::span<const nic::Outgoing> batch) override {
    batch = batch.first(std::min(batch.size(), room));
    for (const nic::Outgoing& one : batch) {
      sent.push_back({{one.head.begin(), one.head.end()}, one.to});
    }
    room -= batch.size();
    return batch.size();
  }
  std::size_t receive(std::span<nic::Incoming>, std::size_t) override { return 0; }
  void give_back(std::span<const nic::Incoming>) override {}
  void resolve(const nic::Address& address, std::uint64_t cookie) override {
    asked.push_back({address, cookie});
  }
  void forget(nic::Destination to) override { forgotten.push_back(to); }
  std::size_t poll_events(std::span<nic::PortEvent>) override { return 0; }
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  nic::Reach reach(const nic::Address&) const override { return reached; }
  bool is_own(const nic::Address& address) const override {
    return std::find(own.begin(), own.end(), address) != own.end();
  }
  int wait_fd() override { return -1; }

  void set_receive_packets(std::size_t packets) { limits_.receive_packets = packets; }

  std::size_t room = 1000;  // packets that it still accepts
  std::vector<Sent> sent;
  std::vector<Asked> asked;
  std::vector<nic::Destination> forgotten;
  nic::Reach reached = nic::Reach::kRouted;
  std::vector<nic::Address> own;  // addresses of this host

 private:
  nic::Address address_;
  nic::PortLimits limits_{.packet_bytes = 1472, .receive_packets = 512};
  nic::PortCounters counters_;
};

struct FakeNic {
  FakePort* command;
  FakePort* data;
};

inline nic::Device device(const std::string& name, const nic::Address& address) {
  nic::Device device;
  device.name = name;
  device.address = address;
  return device;
}
inline nic::Device stream_device(const std::string& name, const nic::Address& address) {
  nic::Device made = device(name, address);
  made.stream = true;
  return made;
}
// Returns NICs of one address each: hosts 1, 2 and so on.
inline std::vector<nic::Device> devices(std::size_t count, nic::Address (*address)(std::uint8_t)) {
  std::vector<nic::Device> made;
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(device("nic" + std::to_string(i), address(static_cast<std::uint8_t>(i + 1))));
  }
  return made;
}

// A table of NICs whose ports the test holds.
class FakeNics {
 public:
  static constexpr std::uint64_t kHost = 77;

  explicit FakeNics(std::size_t count) : FakeNics(devices(count, ipv4)) {}
  explicit FakeNics(const std::vector<nic::Device>& devices) : table(kHost, open_all(devices)) {}

  std::unique_ptr<channel::Module> open(const nic::Device& device) {
    auto command = std::make_unique<FakePort>(device.address, ChannelKind::kCommand);
    auto data = std::make_unique<FakePort>(device.address, ChannelKind::kData);
    ports_.push_back({command.get(), data.get()});
    return make_module({device, std::move(command), std::move(data)});
  }
  // Numbered in the order in which they were opened.
  FakeNic& operator[](std::size_t number) { return ports_[number]; }

 private:
  NicTable::Modules open_all(const std::vector<nic::Device>& devices) {
    NicTable::Modules modules;
    for (const nic::Device& device : devices) modules.push_back(open(device));
    return modules;
  }

  std::vector<FakeNic> ports_;

 public:
  NicTable table;
};

// The table of peers, and the resources that peers draw from.
struct FakePeers {
  explicit FakePeers(const NicTable& of, const Config& config = few())
      : nics(of), resources(config, {KeyedRandom::key_from_seed(1)}, 1472) {}
  static Config few() {
    Config config;
    config.max_peers = 8;
    config.send_packets = 64;
    return config;
  }

  PeerTable& table() { return resources.peers; }
  // Adds a peer met on that NIC of ours; we number its packets from 5000.
  Peer& add(std::uint8_t module = 0) {
    const PeerId id = table().next_id();
    const PeerSetup setup{.link = resources.link_options,
                          .link_resources = resources.link_resources,
                          .inbox_resources = resources.inbox,
                          .outbox_resources = resources.outbox,
                          .id = id,
                          .module = module,
                          .nic = &nics[module],
                          .first_number = 5000,
                          .first_message = 1,
                          .first_packet_bytes = 200};
    Peer& peer = table().put(std::make_unique<Peer>(setup));
    peer.mine = {id.index, 1};
    return peer;
  }

  const NicTable& nics;
  EngineResources resources;
};

// Gives the peer room for several rails; the home rail is the only one yet.
inline void give_rails(Peer& peer) {
  peer.rails = std::make_unique<Rails>();
  peer.rails->upkeep[0] = std::make_unique<RailUpkeep>();
}

}  // namespace pullman::engine
