// Scenarios: hosts on a quiet network, messages, and time that passes only when the test says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/stage.h"
#include "wire/frame.h"
#include "wire/header.h"

namespace pullman::sim {

// A message that was sent, or a receive that was posted.
struct Act {
  Request request;
  std::vector<std::byte> bytes;
  Status returned = Status::kPending;  // by the call

  bool done() const { return request.done(); }
  Status status() const { return request.status(); }
};

class Scene {
 public:
  using Tweak = std::function<void(NodePlan&)>;

  explicit Scene(std::size_t hosts = 2, const Tweak& tweak = {});
  ~Scene();

  Stage& stage() { return stage_; }
  Network& network() { return stage_.network(); }
  Node& node(std::size_t host) { return stage_.node(host); }
  engine::Engine& engine(std::size_t host) { return stage_.node(host).engine(); }
  Stats stats(std::size_t host) { return engine(host).inspector().stats(); }
  Instant now() const { return stage_.now(); }

  // Calls connect and returns at once.
  PeerId connect(std::size_t from, std::size_t to);
  // Connects and waits until both ends are connected; returns their handles of each other.
  struct Couple {
    PeerId there;  // the handle of `from` for `to`
    PeerId back;   // the handle of `to` for `from`
  };
  Couple couple(std::size_t from, std::size_t to);
  std::optional<PeerId> accept(std::size_t host) { return engine(host).accept(); }

  // Messages are filled with bytes that follow from `tag` and the size.
  Act& send(std::size_t host, PeerId to, Tag tag, std::size_t size);
  Act& receive(std::size_t host, PeerId from, Tag tag, std::size_t capacity, Tag ignore = 0);
  Act& receive_any(std::size_t host, std::size_t capacity = 1 << 20) {
    return receive(host, kAnyPeer, 0, capacity, ~Tag{0});
  }
  void disconnect(std::size_t host, PeerId peer);
  void begin_close(std::size_t host);
  // Returns whether a finished receive holds the bytes of a message of this tag and size.
  static bool holds(const Act& receive, Tag tag, std::size_t size);

  void run_for(Duration time);
  // Runs until `condition` holds; returns false if `bound` is over first.
  bool run_until(const std::function<bool()>& condition, Duration bound = std::chrono::seconds(30));
  bool run_until_done(const Act& act, Duration bound = std::chrono::seconds(30)) {
    return run_until([&] { return act.done(); }, bound);
  }

  // Returns the state of all engines, for a failure's message.
  std::string dump();

  // Restarts `host`: its process dies silently, and another begins.
  void restart(std::size_t host);

 private:
  Stage stage_;
  std::deque<Act> acts_;
};

// Header and frames of a datagram, for rules and observers.
struct Opened {
  std::optional<wire::PacketHeader> header;
  std::vector<wire::Frame> frames;

  explicit Opened(std::span<const std::byte> bytes);
  bool is(wire::PacketType type) const { return header && header->type == type; }
  bool has(wire::FrameType type) const;
};

}  // namespace pullman::sim
