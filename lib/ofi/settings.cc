#include "ofi/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/case_conv.hpp>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/log.h"
#include "ofi/provider.h"
#include "pullman/status.h"

namespace pullman::ofi {
namespace {

// A rank of an MPI program that computes makes no progress for minutes, and must not be taken for
// dead. A dead rank is noticed by its launcher.
constexpr auto kPeerTimeout = std::chrono::hours(1);

// Memory for unexpected messages of all peers: a bound, not a reservation. It gives each of the
// default 1024 peers a window of 4 MiB, and each of more peers at least 1 MiB.
constexpr std::size_t kUnexpected = std::size_t{4} << 30;
constexpr std::size_t kLeastWindow = std::size_t{1} << 20;

// With so large a share a message may send more bytes before its grant: a grant takes a round trip,
// which is a tenth of the time that a longer message takes (decision 0023). Includes room for
// immediate data.
constexpr std::size_t kEagerBytes = 257 * 1024;

// A check takes about 3 us: less than a thousandth of it.
constexpr std::chrono::milliseconds kPatience(4);

// A numeric setting.
struct Number {
  const char* name;
  std::size_t least;
  std::size_t most;
  const char* unless;  // its default, for the help text
  const char* help;
};
constexpr Number kNumbers[] = {
    {"max_nics", 1, 8, "4, or PULLMAN_MAX_NICS",
     "How many NICs to use; messages use all of them and survive the loss of any but the last"},
    {"max_peers", 1, 1'000'000,
     "1024, or what the address vector is opened for if that is more; PULLMAN_MAX_PEERS",
     "Peers connected at once: at least the ranks of an MPI job"},
    {"peer_timeout", 1, 3600,
     "3600, since one that computes is silent; or PULLMAN_PEER_TIMEOUT_MS, milliseconds",
     "Seconds of silence after which a peer with operations pending is unreachable"},
    {"close_timeout", 0, 3600, "10, or PULLMAN_CLOSE_TIMEOUT_MS, milliseconds",
     "Seconds that closing an endpoint may take to deliver what was sent"},
    {"eager_bytes", 1024, 1 << 20, "263168, or PULLMAN_EAGER_BYTES",
     "Bytes of a message that are sent before it is matched"},
    {"patience", 1, 60'000, "4; with automatic progress it is always 1",
     "Milliseconds without a call after which a thread of the provider moves packets in the "
     "application's place"},
};
constexpr const Number& kMaxNics = kNumbers[0];
constexpr const Number& kMaxPeers = kNumbers[1];
constexpr const Number& kPeerTimeoutIs = kNumbers[2];
constexpr const Number& kCloseTimeout = kNumbers[3];
constexpr const Number& kEager = kNumbers[4];
constexpr const Number& kPatienceIs = kNumbers[5];

bool set_in_environment(const char* name) {
  return std::getenv(name) != nullptr;
}

std::string variable(std::string_view setting) {
  return "FI_PULLMAN_" + boost::algorithm::to_upper_copy(std::string(setting));
}

// libfabric's own parser takes "2x" for 2 and "abc" for 0.
std::optional<std::size_t> read(const Number& number) {
  std::size_t value = 0;
  const int missing = fi_param_get_size_t(&provider(), number.name, &value);
  const std::string name = variable(number.name);
  if (const char* text = std::getenv(name.c_str())) {
    const char* end = text + std::strlen(text);
    const auto [at, error] = std::from_chars(text, end, value);
    if (error != std::errc{} || at != end || value < number.least || value > number.most) {
      throw Error(Status::kBadOption, fmt::format("{}='{}' is not a whole number from {} to {}",
                                                  name, text, number.least, number.most));
    }
    return value;
  }
  if (missing != 0) return std::nullopt;
  return std::clamp(value, number.least, number.most);
}

// Else a misspelt setting would silently have no effect.
void warn_of_unknown_variables() {
  const auto is_known = [](std::string_view name) {
    for (const char* other : {"driver", "nics", "give_way"}) {
      if (name == variable(other)) return true;
    }
    return std::any_of(std::begin(kNumbers), std::end(kNumbers),
                       [&](const Number& number) { return name == variable(number.name); });
  };
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with("FI_PULLMAN_") || is_known(name)) continue;
    log().warn("there is no setting {}: it changes nothing; 'fi_info -e' lists all there are",
               name);
  }
}

void split(const char* text, std::vector<std::string>& out) {
  out.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) out.push_back(word);
}

}  // namespace

void define_settings(const fi_provider& provider) {
  const auto define = [&](const char* name, fi_param_type type, const std::string& help) {
    fi_param_define(&provider, name, type, "%s", help.c_str());
  };
  define("driver", FI_PARAM_STRING,
         "Driver that opens the NICs: udp, tcp or fabric (default: auto; PULLMAN_DRIVER)");
  define("nics", FI_PARAM_STRING,
         "NICs to use, the first ones first, by name, address or prefix, separated by commas; with "
         "! in front: not to use (default: all; PULLMAN_NICS)");
  for (const Number& number : kNumbers) {
    define(number.name, FI_PARAM_SIZE_T,
           fmt::format("{} ({} to {}; default: {})", number.help, number.least, number.most,
                       number.unless));
  }
  define("give_way", FI_PARAM_BOOL,
         "Whether polls that find nothing give way to others that want the processor: yield, or "
         "sleep for at most a millisecond where they keep it for long (default: yes)");
  warn_of_unknown_variables();
}

std::chrono::milliseconds read_patience() {
  return std::chrono::milliseconds(read(kPatienceIs).value_or(kPatience.count()));
}

bool read_gives_way() {
  int wanted = 1;
  return fi_param_get_bool(&provider(), "give_way", &wanted) != 0 || wanted != 0;
}

Config read_settings() {
  Config config = Config::from_environment();
  // The provider has a thread of its own, which knows of its completions.
  config.progress = Config::Progress::kCalls;
  if (!set_in_environment("PULLMAN_PEER_TIMEOUT_MS")) config.peer_timeout = kPeerTimeout;
  if (!set_in_environment("PULLMAN_EAGER_BYTES")) config.eager_bytes = kEagerBytes;
  // The processes of a job trust each other. One that connects while a rail is cut may come from
  // another of its addresses than that in the address vector.
  if (!set_in_environment("PULLMAN_BELIEVE_ADDRESSES")) config.believe_addresses = true;
  fi_provider* self = &provider();
  char* text = nullptr;
  if (fi_param_get_str(self, "driver", &text) == 0 && text != nullptr) config.driver = text;
  if (fi_param_get_str(self, "nics", &text) == 0 && text != nullptr) split(text, config.nics);
  if (const auto number = read(kMaxNics)) config.max_nics = *number;
  if (const auto number = read(kMaxPeers)) config.max_peers = *number;
  if (const auto number = read(kEager)) config.eager_bytes = *number;
  if (const auto number = read(kPeerTimeoutIs)) config.peer_timeout = std::chrono::seconds(*number);
  if (const auto number = read(kCloseTimeout)) config.close_timeout = std::chrono::seconds(*number);
  if (!set_in_environment("PULLMAN_UNEXPECTED_BYTES")) {
    config.unexpected_bytes = std::max(kUnexpected, config.max_peers * kLeastWindow);
  }
  config.validate();
  return config;
}

}  // namespace pullman::ofi
