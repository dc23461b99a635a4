// What is shown of a context to the outside: a table for each kind of thing, a row for each thing.
// A row is plain bytes, numbers of 64 bits and texts, so that it can be copied into a file as it
// is; tables() describes them to readers (file.h). Times are of CLOCK_MONOTONIC, in nanoseconds; 0
// is never. Does not know where the rows come from, nor what becomes of them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "pullman/stats.h"

namespace pullman::telemetry {

// A text of at most Bytes characters; the rest is zeros.
template <std::size_t Bytes>
struct Text {
  std::array<char, Bytes> letters{};

  Text() = default;
  Text(std::string_view from) {  // NOLINT: a text is assigned wherever one is shown
    std::copy_n(from.begin(), std::min(from.size(), Bytes), letters.begin());
  }
  std::string_view view() const {
    return {letters.data(), static_cast<std::size_t>(
                                std::find(letters.begin(), letters.end(), '\0') - letters.begin())};
  }
};

// Returns the time as it is shown.
inline std::uint64_t clock_count(Instant at) {
  return at == kNever || at == Instant::min()
             ? 0
             : static_cast<std::uint64_t>(at.time_since_epoch().count());
}

// The classes of the histogram of round trips: below 1 us, below 2, below 4, and so on; the last
// one has all above.
inline constexpr std::size_t kRttClasses = 22;
using RttHistogram = std::array<std::uint64_t, kRttClasses + 1>;
inline std::size_t rtt_class(std::uint64_t nanoseconds) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(nanoseconds / 1000)),
                               kRttClasses - 1);
}

struct ContextRow {
  std::uint64_t process = 0;
  std::uint64_t epoch = 0;
  Text<64> address{};
  Text<32> driver{};
  Text<16> security{};
  std::uint64_t progress_thread = 0;
  std::uint64_t begun = 0;
  Stats stats;
  std::uint64_t peers = 0;
  std::uint64_t peers_waiting = 0;
  std::uint64_t lost = 0;
  std::uint64_t lost_after_timeout = 0;
  std::uint64_t credit_stalls = 0;
  std::uint64_t rails_blamed = 0;
  std::uint64_t packets_taken = 0;
  std::uint64_t receives_posted = 0;
  std::uint64_t max_in_flight = 0;
  std::uint64_t max_packets_taken = 0;
  std::uint64_t max_unexpected_bytes = 0;
  RttHistogram rtt{};  // how many ACKs, and the sum of their round trips
};

struct NicRow {
  std::uint64_t nic = 0;
  Text<32> name{};
  Text<16> driver{};
  Text<64> address{};
  std::uint64_t mbps = 0;
  std::uint64_t packet_bytes = 0;
  std::uint64_t link_down = 0;
  std::uint64_t drained = 0;
};

struct ChannelRow {
  std::uint64_t nic = 0;
  Text<16> channel{};
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t send_refused = 0;
  std::uint64_t send_errors = 0;
  std::uint64_t receive_errors = 0;
  std::uint64_t receive_truncated = 0;
  std::uint64_t receive_overflows = 0;
  std::uint64_t returned = 0;
  std::uint64_t too_long = 0;
  std::uint64_t bursts_sent = 0;
  std::uint64_t bursts_received = 0;
  std::uint64_t waiting = 0;
};

// What a peer may be waited for.
namespace waits {
inline constexpr std::string_view kAddress = "its address";
inline constexpr std::string_view kAnswer = "an answer";
inline constexpr std::string_view kProof = "its proof";
inline constexpr std::string_view kMemory = "its reading of memory";
inline constexpr std::string_view kRail = "a rail";
inline constexpr std::string_view kCredit = "credit";
inline constexpr std::string_view kCongestion = "congestion window";
inline constexpr std::string_view kWindow = "send window";
inline constexpr std::string_view kAcks = "ACKs";
inline constexpr std::string_view kReceive = "its receive";
inline constexpr std::string_view kRest = "the rest of a message";
}  // namespace waits

struct PeerRow {
  std::uint64_t peer = 0;
  std::uint64_t generation = 0;
  Text<64> address{};
  Text<16> phase{};
  Text<24> why{};
  Text<24> waits_for{};
  std::uint64_t waits_since = 0;
  std::uint64_t heard_at = 0;
  std::uint64_t in_memory = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_arrived = 0;
  std::uint64_t queued_packets = 0;
  std::uint64_t unfinished_sends = 0;
  std::uint64_t filling_receives = 0;
  std::uint64_t unexpected_bytes = 0;
  std::uint64_t credit_stalls = 0;
  std::uint64_t receives_posted = 0;
  std::uint64_t receives_since = 0;
  std::uint64_t receives_mark = 0;
};

struct RailRow {
  std::uint64_t peer = 0;
  std::uint64_t generation = 0;
  std::uint64_t rail = 0;
  Text<32> nic{};
  Text<64> local{};
  Text<64> remote{};
  Text<16> state{};
  Text<40> reason{};
  std::uint64_t since = 0;
  std::uint64_t rtt_least = 0;
  std::uint64_t rtt = 0;
  std::uint64_t rtt_variation = 0;
  std::uint64_t window = 0;
  std::uint64_t credit = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t packet_bytes = 0;
  std::uint64_t packets_sent = 0;
  std::uint64_t packets_acked = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t lost_after_timeout = 0;
  std::uint64_t first_lost = 0;
  std::uint64_t last_lost = 0;
  std::uint64_t spurious = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t evacuated = 0;
  std::uint64_t times_left = 0;
};

// One kind of thing that went wrong, however often it did.
struct ErrorRow {
  Text<48> kind{};
  std::uint64_t times = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  Text<240> text{};
};

// All rows of one moment.
struct Rows {
  ContextRow context{};
  std::vector<NicRow> nics{};
  std::vector<ChannelRow> channels{};
  std::vector<PeerRow> peers{};
  std::vector<RailRow> rails{};
  std::vector<ErrorRow> errors{};
};

enum class Kind : std::uint8_t {
  kLabel,      // a number or text that tells which thing the row is of
  kText,       // a state
  kCounter,    // grows from 0
  kGauge,      // a quantity now
  kTime,       // when something happened
  kHistogram,  // counters, each of the values below twice what the one before has; of all above;
               // and the sum of the values in ns
};

struct Column {
  std::string_view name;
  Kind kind;
  std::string_view unit;  // empty: it is a count, or has none
  std::size_t offset;     // in the row
  std::size_t bytes;      // 8: a number; any other: a text, or several counters
  std::string_view help;
};

struct Table {
  std::string_view name;
  std::size_t row_bytes;
  std::span<const Column> columns;
};

// Describes the tables: context, nic, channel, peer, rail, error.
std::span<const Table> tables();
std::string_view name(Kind kind);

}  // namespace pullman::telemetry
