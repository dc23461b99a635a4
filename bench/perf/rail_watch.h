// What became of the rails to a peer during a run: their states, and what went over each, over
// time.
//
// Looks about every millisecond when it is called often enough. Knows when a rail changed better
// than that: the rail says how long it has been as it is.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "arrivals.h"
#include "pullman/pullman.h"
#include "report.h"

namespace perf {

struct RailChange {
  Clock::time_point at;
  unsigned rail = 0;
  pullman::RailState state = pullman::RailState::kDown;
  pullman::RailReason reason = pullman::RailReason::kNew;
};

class RailWatch {
 public:
  // `every` is not 0: prints the rails so often, as JSON lines.
  RailWatch(pullman::Context& context, pullman::PeerId peer, std::chrono::milliseconds every);

  // What went over them and how they were counts from now on.
  void start(Clock::time_point now);
  // Cheap when called often.
  void look(Clock::time_point now);
  void stop(Clock::time_point now);

  // As stop() found them, without what was sent before start().
  const std::vector<pullman::RailView>& rails() const { return rails_; }
  const std::vector<RailChange>& changes() const { return changes_; }
  // What the context told of itself; nobody else has asked it since start().
  const std::vector<pullman::RailEvent>& events() const { return events_; }
  // Bytes that were sent over a rail in each kBucket since start().
  const std::vector<std::uint64_t>& sent_over(unsigned rail) const { return sent_.at(rail); }
  // When something was first sent over a rail after `since`.
  std::optional<Clock::time_point> first_sent(unsigned rail, Clock::time_point since) const;
  // When it was first left (down or drained) after `since`.
  std::optional<Clock::time_point> first_left(unsigned rail, Clock::time_point since) const;

 private:
  static constexpr std::size_t kMaxRails = 8;
  static constexpr std::size_t kMaxChanges = 100'000;

  struct Seen {
    pullman::RailView now;
    pullman::RailView first;
    bool known = false;
  };
  // A pause in what is sent over a rail, and what ended it.
  struct Pause {
    Clock::time_point from;
    Clock::time_point to;
  };

  void sample(Clock::time_point now);
  void note(Clock::time_point now, const pullman::RailView& view);
  void note_sent(Clock::time_point now, unsigned rail, std::uint64_t bytes);
  void print(Clock::time_point now);

  pullman::Context& context_;
  pullman::PeerId peer_;
  std::chrono::milliseconds every_;
  Clock::time_point start_{};
  Clock::time_point next_look_{};
  Clock::time_point next_print_{};
  std::array<Seen, kMaxRails> seen_;
  std::array<std::vector<std::uint64_t>, kMaxRails> sent_;
  std::array<std::vector<Pause>, kMaxRails> pauses_;
  std::array<Clock::time_point, kMaxRails> last_sent_{};
  std::vector<RailChange> changes_;
  std::vector<pullman::RailEvent> events_;
  std::vector<pullman::RailView> rails_;
};

nlohmann::ordered_json to_json(const pullman::RailView& rail);
nlohmann::ordered_json to_json(const pullman::RailEvent& event);

// For people: a line for each.
std::string rail_table(const std::vector<pullman::RailView>& rails);

}  // namespace perf
