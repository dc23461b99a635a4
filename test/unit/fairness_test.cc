// One sender among a thousand peers: whatever its NIC takes in a turn, all have their share.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "nic/port.h"

namespace pullman {
namespace {

using std::chrono::microseconds;
using Datagram = std::vector<std::byte>;

constexpr std::size_t kPacketBytes = 1472;

// The datagrams under way to each port; a host has two ports.
using Hub = std::vector<std::deque<Datagram>>;

class HubPort final : public nic::Port {
 public:
  HubPort(Hub& hub, std::size_t place) : hub_(hub), place_(place) {
    address_.kind = 4;
    address_.length = 6;
    address_.bytes[0] = std::byte{10};
    address_.bytes[2] = static_cast<std::byte>(place >> 8);
    address_.bytes[3] = static_cast<std::byte>(place);
    address_.bytes[5] = std::byte{1};
    limits_ = {.packet_bytes = kPacketBytes, .receive_packets = 4096, .burst_bytes = 0};
  }

  std::size_t send(std::span<const nic::Outgoing> batch) override {
    batch = batch.first(std::min(batch.size(), room));
    if (room != kUnbounded) room -= batch.size();
    for (const nic::Outgoing& one : batch) {
      Datagram& packet = hub_[one.to].emplace_back(one.head.begin(), one.head.end());
      packet.insert(packet.end(), one.payload.begin(), one.payload.end());
    }
    return batch.size();
  }
  std::size_t receive(std::span<nic::Incoming> batch, std::size_t enough) override {
    auto& arriving = hub_[place_];
    std::size_t count = 0;
    for (; count < enough && !arriving.empty(); ++count) {
      lent_.push_back(std::move(arriving.front()));
      arriving.pop_front();
      batch[count] = {.bytes = lent_.back(), .buffer = 0};
    }
    return count;
  }
  void give_back(std::span<const nic::Incoming> batch) override {
    lent_.erase(lent_.begin(), lent_.begin() + static_cast<std::ptrdiff_t>(batch.size()));
  }
  void resolve(const nic::Address& to, std::uint64_t cookie) override {
    const auto place =
        std::to_integer<nic::Destination>(to.bytes[2]) << 8 | std::to_integer<int>(to.bytes[3]);
    events_.push_back({.kind = nic::PortEvent::Kind::kResolved, .cookie = cookie, .to = place});
  }
  void forget(nic::Destination) override {}
  std::size_t poll_events(std::span<nic::PortEvent> out) override {
    const std::size_t count = std::min(out.size(), events_.size());
    std::copy_n(events_.begin(), count, out.begin());
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  const nic::PortLimits& limits() const override { return limits_; }
  const nic::PortCounters& counters() const override { return counters_; }
  const nic::Address& address() const override { return address_; }
  int wait_fd() override { return -1; }

  static constexpr std::size_t kUnbounded = ~std::size_t{0};
  std::size_t room = kUnbounded;  // packets that it still accepts

 private:
  Hub& hub_;
  std::size_t place_;
  nic::Address address_;
  nic::PortLimits limits_;
  nic::PortCounters counters_;
  std::deque<nic::PortEvent> events_;
  std::deque<Datagram> lent_;
};

struct Host {
  Host(Hub& hub, std::size_t number, const Config& config)
      : command(new HubPort(hub, 2 * number)), data(new HubPort(hub, 2 * number + 1)) {
    std::vector<engine::NicPorts> nics(1);
    nics[0].command.reset(command);
    nics[0].data.reset(data);
    engine = std::make_unique<engine::Engine>(
        config, std::move(nics), engine::Identity{KeyedRandom::key_from_seed(number + 1)},
        Instant{});
  }
  ~Host() { engine->abort(); }

  HubPort* command;
  HubPort* data;
  std::unique_ptr<engine::Engine> engine;
};

// Host 0 has a message for each of the others.
class Crowd {
 public:
  Crowd(std::size_t peers, std::size_t bytes)
      : hub_(2 * (peers + 1)), message_(bytes), sends_(peers), receives_(peers) {
    Config config;
    config.max_peers = peers;
    config.send_packets = 64 * 1024;
    config.unexpected_bytes = 16384 * peers;
    hosts_.push_back(std::make_unique<Host>(hub_, 0, config));
    config.max_peers = 2;
    config.send_packets = 64;
    for (std::size_t i = 1; i <= peers; ++i) {
      hosts_.push_back(std::make_unique<Host>(hub_, i, config));
    }
    for (std::size_t i = 0; i < peers; ++i) {
      there_.push_back(sender().connect(now_, hosts_[i + 1]->engine->address()).peer);
    }
    for (int i = 0; i < 3000 && connected() < peers; ++i) turn(HubPort::kUnbounded);
    REQUIRE(connected() == peers);
    buffers_.assign(peers, std::vector<std::byte>(bytes));
    for (std::size_t i = 0; i < peers; ++i) {
      hosts_[i + 1]->engine->matching().receive(now_, kAnyPeer, 0, ~Tag{0}, buffers_[i],
                                                receives_[i]);
    }
    for (std::size_t i = 0; i < peers; ++i) {
      sender().sending().send(now_, there_[i], 1, message_, sends_[i]);
    }
  }

  engine::Engine& sender() { return *hosts_[0]->engine; }

  // `room`: packets that the sender's NIC takes.
  void turn(std::size_t room) {
    hosts_[0]->data->room = room;
    sender().progress(now_);
    const engine::Audit audit = sender().inspector().audit();
    forgotten_ += audit.peers_unlisted;
    listed_idle_ += audit.peers_listed_idle;
    for (std::size_t i = 1; i < hosts_.size(); ++i) {
      got_.resize(hosts_.size());
      got_[i] += hub_[2 * i + 1].size();
      hosts_[i]->engine->progress(now_);
    }
    now_ += microseconds(20);
  }
  std::size_t connected() { return sender().inspector().stats().peers_connected; }
  // Returns how many peers have received everything.
  std::size_t done() const {
    return static_cast<std::size_t>(std::count_if(receives_.begin(), receives_.end(),
                                                  [](const Request& one) { return one.done(); }));
  }
  // Packets that reached the peer with the fewest, and the one with the most.
  std::pair<std::size_t, std::size_t> least_and_most() const {
    const auto [least, most] = std::minmax_element(got_.begin() + 1, got_.end());
    return {*least, *most};
  }
  std::size_t forgotten() const { return forgotten_; }
  std::size_t listed_idle() const { return listed_idle_; }

 private:
  Hub hub_;
  std::vector<std::byte> message_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<Request> sends_;
  std::vector<Request> receives_;
  std::vector<PeerId> there_;
  std::vector<std::size_t> got_;
  std::size_t forgotten_ = 0;
  std::size_t listed_idle_ = 0;
  Instant now_{};
  std::vector<std::unique_ptr<Host>> hosts_;
};

TEST_CASE("of a thousand peers each gets its share, whatever the NIC takes") {
  const std::size_t room = GENERATE(48, 500, HubPort::kUnbounded);
  constexpr std::size_t kPeers = 1000;
  constexpr std::size_t kBytes = 100'000;
  Crowd crowd(kPeers, kBytes);

  std::size_t turns = 0;
  while (crowd.done() == 0 && turns < 20'000) {
    crowd.turn(room);
    ++turns;
  }
  const auto [least, most] = crowd.least_and_most();
  while (crowd.done() < kPeers && turns < 40'000) {
    crowd.turn(room);
    ++turns;
  }

  CAPTURE(room, turns, least, most);
  CHECK(crowd.done() == kPeers);
  CHECK(2 * least >= most);  // a turn serves only some of them
  CHECK(crowd.forgotten() == 0);
  CHECK(crowd.listed_idle() == 0);
}

}  // namespace
}  // namespace pullman
