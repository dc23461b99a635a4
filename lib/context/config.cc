#include "pullman/config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>

#include "base/log.h"
#include "context/trace_signal.h"
#include "pullman/status.h"
#include "relay/routes.h"

namespace pullman {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// One numeric option: its member, its names and its range. Durations are in `unit`.
struct Option {
  const char* name;
  const char* variable;
  std::uint64_t least;
  std::uint64_t most;
  std::uint64_t (*get)(const Config&);
  void (*set)(Config&, std::uint64_t);
  const char* unit;
};

template <auto Member>
std::uint64_t get_number(const Config& config) {
  return static_cast<std::uint64_t>(config.*Member);
}
template <auto Member>
void set_number(Config& config, std::uint64_t value) {
  using T = std::remove_reference_t<decltype(config.*Member)>;
  config.*Member = static_cast<T>(value);
}
// Rounds a duration up to whole units, so that the range check sees any excess.
template <auto Member, typename Unit>
std::uint64_t get_duration(const Config& config) {
  const auto value = config.*Member;
  return value.count() < 0 ? std::numeric_limits<std::uint64_t>::max()
                           : static_cast<std::uint64_t>(std::chrono::ceil<Unit>(value).count());
}
template <auto Member, typename Unit>
void set_duration(Config& config, std::uint64_t value) {
  config.*Member = Unit(static_cast<std::int64_t>(value));
}

constexpr std::uint64_t kAnything = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kHourMs = 3'600'000;

constexpr Option kOptions[] = {
    {"port", "PULLMAN_PORT", 0, 65535, get_number<&Config::port>, set_number<&Config::port>, ""},
    {"data_port", "PULLMAN_DATA_PORT", 0, 65535, get_number<&Config::data_port>,
     set_number<&Config::data_port>, ""},
    {"packet_bytes", "PULLMAN_PACKET_BYTES", 0, 65507, get_number<&Config::packet_bytes>,
     set_number<&Config::packet_bytes>, " bytes"},
    {"receive_buffer_bytes", "PULLMAN_RECEIVE_BUFFER_BYTES", 0, 1 << 30,
     get_number<&Config::receive_buffer_bytes>, set_number<&Config::receive_buffer_bytes>,
     " bytes"},
    {"busy_poll", "PULLMAN_BUSY_POLL_US", 0, 10'000, get_duration<&Config::busy_poll, microseconds>,
     set_duration<&Config::busy_poll, microseconds>, " us"},
    {"max_nics", "PULLMAN_MAX_NICS", 1, 8, get_number<&Config::max_nics>,
     set_number<&Config::max_nics>, ""},
    {"sticky_rails", "PULLMAN_STICKY_RAILS", 0, 1, get_number<&Config::sticky_rails>,
     set_number<&Config::sticky_rails>, ""},
    {"last_resort", "PULLMAN_LAST_RESORT", 0, 1, get_number<&Config::last_resort>,
     set_number<&Config::last_resort>, ""},
    {"offloads", "PULLMAN_OFFLOADS", 0, 1, get_number<&Config::offloads>,
     set_number<&Config::offloads>, ""},
    {"shared_memory", "PULLMAN_SHARED_MEMORY", 0, 1, get_number<&Config::shared_memory>,
     set_number<&Config::shared_memory>, ""},
    {"trace_bytes", "PULLMAN_TRACE_BYTES", 4096, 1 << 30, get_number<&Config::trace_bytes>,
     set_number<&Config::trace_bytes>, " bytes"},
    {"self_test", "PULLMAN_SELF_TEST", 0, 1, get_number<&Config::self_test>,
     set_number<&Config::self_test>, ""},
    {"tiny_bytes", "PULLMAN_TINY_BYTES", 0, 1024, get_number<&Config::tiny_bytes>,
     set_number<&Config::tiny_bytes>, " bytes"},
    {"eager_bytes", "PULLMAN_EAGER_BYTES", 1024, 1 << 20, get_number<&Config::eager_bytes>,
     set_number<&Config::eager_bytes>, " bytes"},
    {"max_peers", "PULLMAN_MAX_PEERS", 1, 1'000'000, get_number<&Config::max_peers>,
     set_number<&Config::max_peers>, ""},
    {"unexpected_bytes", "PULLMAN_UNEXPECTED_BYTES", 4096, std::uint64_t{1} << 44,
     get_number<&Config::unexpected_bytes>, set_number<&Config::unexpected_bytes>, " bytes"},
    {"send_packets", "PULLMAN_SEND_PACKETS", 64, 1 << 20, get_number<&Config::send_packets>,
     set_number<&Config::send_packets>, ""},
    {"receive_packets", "PULLMAN_RECEIVE_PACKETS", 16, 65536, get_number<&Config::receive_packets>,
     set_number<&Config::receive_packets>, ""},
    {"send_window", "PULLMAN_SEND_WINDOW", 16, 4096, get_number<&Config::send_window>,
     set_number<&Config::send_window>, " packets"},
    {"ack_delay", "PULLMAN_ACK_DELAY_US", 0, 8'000, get_duration<&Config::ack_delay, microseconds>,
     set_duration<&Config::ack_delay, microseconds>, " us"},
    {"ack_packets", "PULLMAN_ACK_PACKETS", 1, 1024, get_number<&Config::ack_packets>,
     set_number<&Config::ack_packets>, ""},
    {"pto_initial", "PULLMAN_PTO_INITIAL_US", 1'000, 10'000'000,
     get_duration<&Config::pto_initial, microseconds>,
     set_duration<&Config::pto_initial, microseconds>, " us"},
    {"pto_min", "PULLMAN_PTO_MIN_US", 100, 1'000'000, get_duration<&Config::pto_min, microseconds>,
     set_duration<&Config::pto_min, microseconds>, " us"},
    {"peer_timeout", "PULLMAN_PEER_TIMEOUT_MS", 10, kHourMs,
     get_duration<&Config::peer_timeout, milliseconds>,
     set_duration<&Config::peer_timeout, milliseconds>, " ms"},
    {"close_timeout", "PULLMAN_CLOSE_TIMEOUT_MS", 0, kHourMs,
     get_duration<&Config::close_timeout, milliseconds>,
     set_duration<&Config::close_timeout, milliseconds>, " ms"},
    {"sleep_after", "PULLMAN_SLEEP_AFTER_US", 0, 1'000'000,
     get_duration<&Config::sleep_after, microseconds>,
     set_duration<&Config::sleep_after, microseconds>, " us"},
    {"pin_progress", "PULLMAN_PIN_PROGRESS", 0, 1, get_number<&Config::pin_progress>,
     set_number<&Config::pin_progress>, ""},
    {"checksum", "PULLMAN_CHECKSUM", 0, 1, get_number<&Config::checksum>,
     set_number<&Config::checksum>, ""},
    {"believe_addresses", "PULLMAN_BELIEVE_ADDRESSES", 0, 1, get_number<&Config::believe_addresses>,
     set_number<&Config::believe_addresses>, ""},
    {"seed", "PULLMAN_SEED", 0, kAnything, get_number<&Config::seed>, set_number<&Config::seed>,
     ""},
};

[[noreturn]] void bad_option(const std::string& sentence) {
  throw Error(Status::kBadOption, sentence);
}

std::uint64_t read_number(const char* variable, const char* text) {
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || at != end || at == text) {
    bad_option(fmt::format("{}='{}' is not a whole number", variable, text));
  }
  return value;
}

Config::Threads read_threads(std::string_view text) {
  if (text == "one") return Config::Threads::kOne;
  if (text == "many") return Config::Threads::kMany;
  bad_option(fmt::format("PULLMAN_THREADS='{}' is neither 'one' nor 'many'", text));
}

Config::Progress read_progress(std::string_view text) {
  if (text == "calls") return Config::Progress::kCalls;
  if (text == "thread") return Config::Progress::kThread;
  bad_option(fmt::format("PULLMAN_PROGRESS='{}' is neither 'calls' nor 'thread'", text));
}

Config::Security read_security(std::string_view text) {
  if (text == "authenticate") return Config::Security::kAuthenticate;
  if (text == "encrypt") return Config::Security::kEncrypt;
  if (text == "off") return Config::Security::kOff;
  bad_option(
      fmt::format("PULLMAN_SECURITY='{}' is none of 'authenticate', 'encrypt' and 'off'", text));
}

// Returns a variable's value, or nothing if it is not set. One that is set to nothing was meant to
// have a value: to go on without a key would protect nothing.
std::string read_text(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return {};
  if (*text == '\0') bad_option(fmt::format("{} is empty: unset it, or give it a value", variable));
  return text;
}

bool is_known(std::string_view variable) {
  for (const char* other :
       {"PULLMAN_DRIVER", "PULLMAN_PROVIDER", "PULLMAN_NICS", "PULLMAN_THREADS", "PULLMAN_PROGRESS",
        "PULLMAN_LOG", "PULLMAN_COUNTERS", "PULLMAN_TRACE", "PULLMAN_TRACE_SIGNAL",
        "PULLMAN_SECURITY", "PULLMAN_KEY_FILE", "PULLMAN_KEY", "PULLMAN_RELAY",
        // Those of pullman/world.h.
        "PULLMAN_RENDEZVOUS", "PULLMAN_RANK", "PULLMAN_SIZE", "PULLMAN_REPORT"}) {
    if (variable == other) return true;
  }
  return std::any_of(std::begin(kOptions), std::end(kOptions),
                     [&](const Option& option) { return variable == option.variable; });
}

// Warns about variables that are not options, since a misspelt one would have no effect.
void warn_of_unknown_variables() {
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::string_view variable = entry.substr(0, entry.find('='));
    if (!variable.starts_with("PULLMAN_") || is_known(variable)) continue;
    log().warn("there is no option {}: it changes nothing; pullman/config.h names all there are",
               variable);
  }
}

void check(const Option& option, const char* called, std::uint64_t value) {
  if (value >= option.least && value <= option.most) return;
  bad_option(fmt::format("{} = {}{} is out of range: {} to {}", called, value, option.unit,
                         option.least, option.most));
}

}  // namespace

Config Config::from_environment() {
  static std::once_flag looked;
  std::call_once(looked, warn_of_unknown_variables);
  Config config;
  if (const char* driver = std::getenv("PULLMAN_DRIVER")) config.driver = driver;
  if (const char* provider = std::getenv("PULLMAN_PROVIDER")) config.provider = provider;
  if (const char* nics = std::getenv("PULLMAN_NICS"); nics != nullptr && *nics != '\0') {
    boost::algorithm::split(config.nics, nics, boost::algorithm::is_any_of(","));
  }
  if (const char* threads = std::getenv("PULLMAN_THREADS")) {
    config.threads = read_threads(threads);
  }
  if (const char* progress = std::getenv("PULLMAN_PROGRESS")) {
    config.progress = read_progress(progress);
  }
  if (const char* security = std::getenv("PULLMAN_SECURITY")) {
    config.security = read_security(security);
  }
  config.counters = read_text("PULLMAN_COUNTERS");
  config.relay = read_text("PULLMAN_RELAY");
  config.trace = read_text("PULLMAN_TRACE");
  config.trace_signal = read_text("PULLMAN_TRACE_SIGNAL");
  config.key_file = read_text("PULLMAN_KEY_FILE");
  config.pass_phrase = read_text("PULLMAN_KEY");
  for (const Option& option : kOptions) {
    const char* text = std::getenv(option.variable);
    if (text == nullptr) continue;
    const std::uint64_t value = read_number(option.variable, text);
    check(option, option.variable, value);
    option.set(config, value);
  }
  config.validate();
  return config;
}

void Config::validate() const {
  for (const Option& option : kOptions) check(option, option.name, option.get(*this));
  if (unexpected_bytes / max_peers < 4096) {
    bad_option(
        fmt::format("unexpected_bytes = {} leaves {} bytes for each of max_peers = {} peers: at "
                    "least 4096 each",
                    unexpected_bytes, unexpected_bytes / max_peers, max_peers));
  }
  if (port != 0 && port == data_port) {
    bad_option(
        fmt::format("port and data_port are both {}: a NIC's two channels need a port each", port));
  }
  if (packet_bytes != 0 && packet_bytes < kLeastPacketBytes) {
    bad_option(
        fmt::format("packet_bytes = {} is out of range: {} to 65507, or 0 for what the NIC carries",
                    packet_bytes, kLeastPacketBytes));
  }
  if (std::string why; !relay.empty() && !relay::read_routes(relay, why)) {
    bad_option(fmt::format("relay: {}", why));
  }
  if (keys.size() > kMaxKeys) {
    bad_option(fmt::format("there are {} keys: at most {}", keys.size(), kMaxKeys));
  }
  if (!trace_signal.empty() && TraceSignal::number_of(trace_signal) == 0) {
    bad_option(fmt::format("trace_signal = '{}' is no signal that a program can take: USR1 or USR2",
                           trace_signal));
  }
  if (!trace_signal.empty() && (trace.empty() || trace == "0")) {
    bad_option("trace_signal asks for a trace, and there is none: name its file (PULLMAN_TRACE)");
  }
  for (const std::string& nic : nics) {
    if (nic.empty() || nic == "!")
      bad_option("nics has an empty name: write names or addresses between commas");
  }
}

}  // namespace pullman
