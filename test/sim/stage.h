// The stage: a network, its hosts, and virtual time. Each step goes to the next event.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/findings.h"
#include "sim/network.h"
#include "sim/node.h"

namespace pullman::sim {

class Stage {
 public:
  Stage(std::size_t hosts, std::uint64_t seed) : network_(hosts, seed, findings_), memory_(seed) {
    network_.advance(Instant(std::chrono::seconds(1)));  // not 0, which could be taken for "never"
  }

  Findings& findings() { return findings_; }
  Network& network() { return network_; }
  Node& node(std::size_t host) { return *nodes_[host]; }
  std::size_t hosts() const { return nodes_.size(); }
  Instant now() const { return network_.now(); }

  Node& add(const NodePlan& plan, std::uint64_t seed) {
    const auto host = static_cast<std::uint8_t>(nodes_.size());
    nodes_.push_back(std::make_unique<Node>(network_, memory_, host, plan, seed));
    return *nodes_.back();
  }

  // Sets the program, which is called after each turn of a node.
  void set_program(std::function<void(Node&)> program) { program_ = std::move(program); }

  // Goes to the next event, at most to `limit`, and runs what is due. Returns false if there are no
  // more events and `limit` is kNever.
  bool step(Instant limit);

 private:
  Findings findings_;
  Network network_;
  SharedMemory memory_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::function<void(Node&)> program_;
};

}  // namespace pullman::sim
