// A host of the lab: the real engine on the road's ports, a processor that takes its time, and a
// program that keeps messages under way or takes them.
#pragma once

#include <memory>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "plot/road.h"
#include "plot/scenario.h"

namespace pullman::lab {

class Host {
 public:
  Host(Road& road, std::size_t number, const Scenario& scenario, std::uint64_t seed);
  ~Host();

  // From `start` on it keeps the scenario's messages under way to `to`, tagged with its number.
  void send_to(const Host& to, Instant start);
  // It takes what so many senders send; bytes are counted in `taken`, by tag.
  void take(std::size_t senders, std::vector<std::uint64_t>& taken);

  // When it has something to do, and its processor the time to do it.
  Instant wake() const;
  void turn(Instant now);

  engine::LinkView link() const { return engine_->link(peer_).value_or(engine::LinkView{}); }
  Stats stats() const { return engine_->stats(); }
  std::size_t number() const { return number_; }

 private:
  void run_program(Instant now);
  void plan_stall(Instant from);
  bool looks_seldom() const { return taken_ == nullptr && scenario_.look_every.count() != 0; }

  Road& road_;
  std::size_t number_;
  const Scenario& scenario_;
  Random random_;
  const nic::Port* command_;
  const nic::Port* data_;
  std::unique_ptr<engine::Engine> engine_;
  PeerId peer_;               // of a sender
  const Host* to_ = nullptr;  // whom a sender is to call at start_
  Instant start_ = kNever;
  std::vector<std::byte> buffer_;  // of all messages: nobody reads it
  std::vector<std::unique_ptr<Request>> requests_;
  std::vector<std::uint64_t>* taken_ = nullptr;  // of a receiver
  Instant ready_at_{};                           // the processor is busy until then
  Instant stall_at_ = kNever;
};

}  // namespace pullman::lab
