// Results, and how they are shown: a table that fills as it goes, JSON lines, or CSV.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace perf {

using Clock = std::chrono::steady_clock;

// Half round trips in nanoseconds. Keeps every sample up to a bound, then only count and maximum.
class Samples {
 public:
  void add(std::chrono::nanoseconds half_round_trip);
  bool empty() const { return kept_.empty(); }
  double max_us() const { return static_cast<double>(max_ns_) / 1e3; }
  // `fraction` of the samples are at most this. Sorts: call after the run.
  double percentile_us(double fraction);

 private:
  static constexpr std::size_t kMaxKept = 16u << 20;  // 64 MiB
  std::vector<std::uint32_t> kept_;
  std::uint32_t max_ns_ = 0;
};

// What the NICs counted, at both ends together.
struct NicCounts {
  struct Count {
    const char* name;
    std::uint64_t NicCounts::*count;
  };
  std::uint64_t send_errors = 0;        // packets the device rejected
  std::uint64_t receive_overflows = 0;  // packets that our own sockets dropped
  std::uint64_t bursts_sent = 0;        // calls that sent several packets as one
  std::uint64_t bursts_received = 0;    // datagrams that were several packets
  std::uint64_t bursts_refused = 0;     // sockets that send packets one by one since
};

// By the names they have in results and between the two ends.
inline constexpr std::array<NicCounts::Count, 5> kNicCounts = {{
    {"send_errors", &NicCounts::send_errors},
    {"receive_overflows", &NicCounts::receive_overflows},
    {"bursts_sent", &NicCounts::bursts_sent},
    {"bursts_received", &NicCounts::bursts_received},
    {"bursts_refused", &NicCounts::bursts_refused},
}};

// What one run of one size came to, on one side or both.
struct Outcome {
  std::uint64_t messages = 0;  // delivered, all directions together
  std::chrono::nanoseconds elapsed{0};
  std::uint64_t errors = 0;  // messages that failed, were wrong, or (raw) were lost
  std::uint64_t retransmits = 0;
  std::uint64_t spurious_retransmits = 0;
  std::uint64_t evacuated = 0;  // packets that left for other rails
  NicCounts nic;
  Samples half_round_trips;       // latency only
  nlohmann::ordered_json more;    // what only this test has: goes to the end of a JSON line
  std::string text;               // the same for people, below the table's line
  std::vector<std::byte> series;  // the server's: follows its result
};

// A line of results. Throws Failure.
void put_line(const std::string& line);

class Report {
 public:
  explicit Report(const Options& options, std::string driver);

  // Says on a terminal, about twice a second, how far a run is. Cheap when called often.
  void progress(std::size_t size, std::uint64_t messages, Clock::time_point now);
  void row(std::size_t size, Outcome& outcome);

 private:
  void table_row(std::size_t size, Outcome& outcome);
  void json_row(std::size_t size, Outcome& outcome);
  void csv_row(std::size_t size, Outcome& outcome);
  void erase_progress();

  Test test_;
  Format format_;
  bool raw_;
  std::string driver_;
  bool terminal_;                // standard error is one
  bool progress_shown_ = false;  // and its last line is ours
  Clock::time_point next_progress_;
};

}  // namespace perf
