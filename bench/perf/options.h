// What pullman-perf was asked to do.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "key_options.h"

namespace perf {

// Anything that ends the program early, as a sentence for the person who ran it.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Test : std::uint8_t {
  kLatency,        // ping-pong: half round trips
  kBandwidth,      // a stream from client to server
  kBidirectional,  // a stream each way at once
  kRate,           // a window of messages, then a word from the receiver, and again
  kFailover,       // a verified stream while rails are cut and mended
};

enum class Format : std::uint8_t { kTable, kJson, kCsv };

const char* name(Test test);
Test test_named(std::string_view text);  // throws Failure

struct Options {
  std::string host;  // without a port; empty: serve one client
  Test test = Test::kLatency;
  std::vector<std::size_t> sizes = {64};
  std::uint64_t iterations = 0;  // messages per size; 0: as many as fit into the duration
  double duration_s = 1;
  std::size_t window = 64;    // messages outstanding
  bool window_given = false;  // else it is less where that many would take too long to arrive
  std::string driver;         // empty: as the environment says
  std::vector<std::string> nics;
  KeyOptions keys;
  std::uint16_t port = 0;  // 0: PULLMAN_PORT, else kDefaultPort
  bool check = false;
  bool raw = false;
  std::chrono::microseconds sleep_after{0};  // of polling for nothing; 0: as the environment says
  Format format = Format::kTable;
  bool rails = false;                        // say at the end what became of them
  std::vector<std::string> cuts;             // failover: as cuts.h reads them
  std::string output;                        // failover: files' names, without .csv and .svg
  std::chrono::milliseconds watch_every{0};  // failover: rails as JSON lines meanwhile; 0: none
  double patience_s = 60;                    // how long a silent other end is waited for
};

inline constexpr std::uint16_t kDefaultPort = 7100;
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxWindow = 65536;

// "64", "4K", "1M", or "1..4M" (doubling from the first up to the last). Throws Failure.
std::vector<std::size_t> parse_sizes(std::string_view text);

// Reads the command line. Returns true to go on; false when all is said (help, or a mistake), with
// the exit code in `exit_code`.
bool parse_command_line(int argc, char** argv, Options& options, int& exit_code);

}  // namespace perf
