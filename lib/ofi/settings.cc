#include "ofi/settings.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "ofi/provider.h"

namespace pullman::ofi {
namespace {

// A rank of an MPI program that computes moves no packets, for minutes; it must not be taken for
// dead. One that is dead is seen by who started it.
constexpr auto kPeerTimeout = std::chrono::hours(1);

// What one peer may have here that nobody has posted a receive for: a bound, not a reservation. MPI
// programs receive in any order, however much was sent before.
constexpr std::size_t kSharePerPeer = std::size_t{64} << 20;

// Beside such a share a message may bring more of itself unasked than where a share is small: a
// grant takes a round trip, which is a tenth of the time of what is longer (docs/mpi.md). With room
// for immediate data.
constexpr std::size_t kEagerBytes = 257 * 1024;

// A look costs some 3 us: below one in a thousand.
constexpr std::chrono::milliseconds kPatience(4);
constexpr std::size_t kMostPatience = 60'000;

bool set_in_environment(const char* name) {
  return std::getenv(name) != nullptr;
}

void split(const char* text, std::vector<std::string>& out) {
  out.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) out.push_back(word);
}

}  // namespace

void define_settings(const fi_provider& provider) {
  const auto define = [&](const char* name, fi_param_type type, const char* help) {
    fi_param_define(&provider, name, type, "%s", help);
  };
  define("driver", FI_PARAM_STRING,
         "Driver that opens the NICs: udp, tcp or fabric (default: auto; PULLMAN_DRIVER)");
  define("nics", FI_PARAM_STRING,
         "NICs to use, the first ones first, by name, address or prefix, separated by commas; with "
         "! in front: not to use (default: all; PULLMAN_NICS)");
  define("most_nics", FI_PARAM_SIZE_T,
         "How many NICs to use, 1 to 4; messages use all of them and survive the loss of any but "
         "the last (default: 4; PULLMAN_MOST_NICS)");
  define("max_peers", FI_PARAM_SIZE_T,
         "Peers connected at once: at least the ranks of an MPI job (default: 1024, or what the "
         "address vector is opened for if that is more; PULLMAN_MAX_PEERS)");
  define("peer_timeout", FI_PARAM_SIZE_T,
         "Seconds of silence after which a peer with operations pending is unreachable (default: "
         "3600: one that computes is silent; PULLMAN_PEER_TIMEOUT_MS)");
  define("close_timeout", FI_PARAM_SIZE_T,
         "Seconds that closing an endpoint may take to deliver what was sent (default: 10; "
         "PULLMAN_CLOSE_TIMEOUT_MS)");
  define("eager_bytes", FI_PARAM_SIZE_T,
         "Bytes of a message that are sent before it is matched (default: 263168; "
         "PULLMAN_EAGER_BYTES)");
  define("give_way", FI_PARAM_BOOL,
         "Whether polling in vain gives way to other processes: for jobs of more processes than "
         "processors (default: no)");
  define("patience", FI_PARAM_SIZE_T,
         "Milliseconds without a call after which a thread of the provider moves packets in the "
         "application's place; with automatic progress it is 1 (default: 4)");
}

std::chrono::milliseconds read_patience() {
  std::size_t number = 0;
  if (fi_param_get_size_t(&provider(), "patience", &number) != 0) return kPatience;
  return std::chrono::milliseconds(std::clamp<std::size_t>(number, 1, kMostPatience));
}

bool read_courtesy() {
  int wanted = 0;
  return fi_param_get_bool(&provider(), "give_way", &wanted) == 0 && wanted != 0;
}

Config read_settings() {
  Config config = Config::from_environment();
  if (!set_in_environment("PULLMAN_PEER_TIMEOUT_MS")) config.peer_timeout = kPeerTimeout;
  if (!set_in_environment("PULLMAN_EAGER_BYTES")) config.eager_bytes = kEagerBytes;
  // The processes of a job trust each other; one that calls while a rail is cut is known by another
  // of its addresses than the one in the address vector.
  if (!set_in_environment("PULLMAN_BELIEVE_ADDRESSES")) config.believe_addresses = true;
  fi_provider* self = &provider();
  char* text = nullptr;
  if (fi_param_get_str(self, "driver", &text) == 0 && text != nullptr) config.driver = text;
  if (fi_param_get_str(self, "nics", &text) == 0 && text != nullptr) split(text, config.nics);
  std::size_t number = 0;
  if (fi_param_get_size_t(self, "most_nics", &number) == 0) config.most_nics = number;
  if (fi_param_get_size_t(self, "max_peers", &number) == 0) config.max_peers = number;
  if (fi_param_get_size_t(self, "eager_bytes", &number) == 0) config.eager_bytes = number;
  if (fi_param_get_size_t(self, "peer_timeout", &number) == 0) {
    config.peer_timeout = std::chrono::seconds(number);
  }
  if (fi_param_get_size_t(self, "close_timeout", &number) == 0) {
    config.close_timeout = std::chrono::seconds(number);
  }
  if (!set_in_environment("PULLMAN_UNEXPECTED_BYTES")) {
    config.unexpected_bytes = config.max_peers * kSharePerPeer;
  }
  config.validate();
  return config;
}

}  // namespace pullman::ofi
