// Scenarios: many hosts, each of which talks to all others.
#include <catch2/catch.hpp>
#include <vector>

#include "sim/scene.h"

namespace pullman::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kBytes = 64;

// Configures as little memory as the hosts need.
void modest(NodePlan& plan) {
  plan.config.max_peers = kNetworkHosts;
  plan.config.unexpected_bytes = kNetworkHosts * std::size_t{4096};
  plan.config.send_packets = 512;  // each call takes one
  plan.config.send_window = 16;
  plan.turn_gap = microseconds(20);
}

// Hosts each of which calls all with higher numbers; each sends one message to every other.
class Crowd {
 public:
  explicit Crowd(std::size_t hosts) : scene_(hosts, modest), received_(hosts) {
    for (std::size_t host = 0; host < hosts; ++host) {
      for (std::size_t other = 1; other < hosts; ++other) {
        received_[host].push_back(&scene_.receive_any(host, kBytes));
      }
    }
  }

  Scene& scene() { return scene_; }

  void begin() {
    for (std::size_t host = 0; host < received_.size(); ++host) {
      for (std::size_t other = host + 1; other < received_.size(); ++other) {
        sent_.push_back(&scene_.send(host, scene_.connect(host, other), host, kBytes));
      }
    }
  }
  // Sends from hosts that were called, too.
  bool finish(Duration bound) {
    return scene_.run_until(
        [&] {
          if (scene_.now() < look_at_) return false;
          look_at_ = scene_.now() + milliseconds(1);
          for (std::size_t host = 0; host < received_.size(); ++host) {
            while (const auto caller = scene_.accept(host)) {
              sent_.push_back(&scene_.send(host, *caller, host, kBytes));
            }
          }
          return all_done();
        },
        bound);
  }

  // Returns whether each host has one message of every other.
  bool each_has_all() const {
    bool all = true;
    for (std::size_t host = 0; host < received_.size(); ++host) {
      std::vector<int> from(received_.size());
      for (const Act* act : received_[host]) {
        const Tag tag = act->request.tag();
        if (act->status() != Status::kOk || tag >= from.size()) return false;
        all = all && Scene::holds(*act, tag, kBytes);
        ++from[tag];
      }
      from[host] += 1;
      for (const int count : from) all = all && count == 1;
    }
    return all;
  }

 private:
  bool all_done() {
    while (done_ < received_.size()) {
      for (const Act* act : received_[done_]) {
        if (!act->done()) return false;
      }
      ++done_;
    }
    return true;
  }

  Scene scene_;
  std::vector<std::vector<Act*>> received_;  // by host
  std::vector<Act*> sent_;
  Instant look_at_{};
  std::size_t done_ = 0;  // hosts that have received everything
};

// Every wire loses, duplicates and delays, some hosts are cut off for a while, and some stall.
TEST_CASE("256 hosts all to all: through faults each message arrives once") {
  Crowd crowd(kNetworkHosts);
  Network& network = crowd.scene().network();
  for (std::size_t from = 0; from < kNetworkHosts; ++from) {
    for (std::size_t to = 0; to < kNetworkHosts; ++to) {
      WireFaults& wire = network.wire(from, to);
      wire.loss = 20'000;
      wire.duplicate = 10'000;
      wire.reorder = 10'000;
      wire.reorder_by = microseconds(100);
    }
  }
  const Instant start = crowd.scene().now();
  for (std::uint8_t host = 0; host < 250; host += 50) {
    for (std::size_t other = 0; other < kNetworkHosts; ++other) {
      const auto it = static_cast<std::uint8_t>(other);
      for (const auto& [from, to] : {std::pair(host, it), std::pair(it, host)}) {
        network.partitions().push_back({.from = from,
                                        .to = to,
                                        .start = start + milliseconds(host),
                                        .end = start + milliseconds(host + 100)});
      }
    }
    crowd.scene().node(host + 25u).stall_until(start + milliseconds(200));
  }

  crowd.begin();

  REQUIRE(crowd.finish(seconds(30)));
  CHECK(crowd.each_has_all());
  CHECK(network.counters().lost > 1000);
  CHECK_FALSE(crowd.scene().stage().findings().any());
}

}  // namespace
}  // namespace pullman::sim
