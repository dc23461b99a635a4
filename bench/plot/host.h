// A host of the lab: the real engine on the road's ports, a processor that takes its time, and a
// program that keeps messages under way, takes them, or both.
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

  // From `start` on it keeps the scenario's messages under way to `to`, tagged `flow`; to as many
  // hosts as it is told.
  void send_to(const Host& to, std::size_t flow, Instant start);
  // It takes what so many senders send; bytes are counted in `taken`, by tag.
  void take(std::size_t senders, std::vector<std::uint64_t>& taken);

  // When it has something to do, and its processor the time to do it.
  Instant wake() const;
  void turn(Instant now);

  engine::LinkView link(std::size_t flow) const;
  Stats stats() const { return engine_->inspector().stats(); }
  std::size_t number() const { return number_; }

 private:
  void begin_flows(Instant now);
  Instant next_start() const;
  void run_program(Instant now);
  void plan_stall(Instant from);
  bool polls_infrequently() const { return taken_ == nullptr && scenario_.look_every.count() != 0; }

  Road& road_;
  std::size_t number_;
  const Scenario& scenario_;
  Random random_;
  std::unique_ptr<engine::Engine> engine_;
  struct Flow {
    const Host* to;
    Tag tag;
    Instant start;
    PeerId peer{};  // once it has begun
    std::vector<std::unique_ptr<Request>> sends{};
  };
  std::vector<Flow> flows_;
  std::vector<std::byte> buffer_;  // of all messages: nobody reads it
  std::vector<std::unique_ptr<Request>> receives_;
  std::vector<std::uint64_t>* taken_ = nullptr;  // of a receiver
  Instant ready_at_{};                           // the processor is busy until then
  Instant stall_at_ = kNever;
};

}  // namespace pullman::lab
