#include "context/security.h"

#include <fmt/format.h>

#include <span>

#include "base/log.h"
#include "context/job_keys.h"
#include "context/nics.h"
#include "launch/job_key.h"
#include "pullman/status.h"
#include "wire/protection.h"

namespace pullman {
namespace {

using Security = Config::Security;

[[noreturn]] void refuse_to_start(const std::string& sentence) {
  throw Error(Status::kBadOption, sentence);
}

// Two processes that have the same seed would seal different packets alike.
[[noreturn]] void refuse_seed() {
  refuse_to_start(
      "with a seed packets cannot be protected, since processes that have the same would seal "
      "different packets alike: leave PULLMAN_SEED out, or say PULLMAN_SECURITY=off");
}

std::string in_brackets(const std::string& problem) {
  return problem.empty() ? "" : fmt::format(" ({})", problem);
}

[[noreturn]] void refuse_for_lack_of_a_key(const Config& config, const std::string& problem) {
  if (config.seed != 0) refuse_seed();
  refuse_to_start(fmt::format(
      "this job has no key, so anybody could send to it{}. 'pullman-key FILE' makes one for "
      "PULLMAN_KEY_FILE; PULLMAN_KEY='some words' is enough for trying things out; mpirun brings "
      "one; PULLMAN_SECURITY=off goes without",
      in_brackets(problem)));
}

Config without_keys(const Config& config) {
  Config copy = config;
  crypto::wipe(std::as_writable_bytes(std::span(copy.keys)));
  crypto::wipe(std::as_writable_bytes(std::span(copy.pass_phrase)));
  copy.keys.clear();
  copy.pass_phrase.clear();
  return copy;
}

void check_can_be_protected(const Config& config) {
  if (config.seed != 0) refuse_seed();
  constexpr std::size_t kLeast = Config::kLeastPacketBytes + wire::kTagBytes;
  if (config.packet_bytes != 0 && config.packet_bytes < kLeast) {
    refuse_to_start(fmt::format(
        "packet_bytes = {} is too little for packets that are protected: {} to 65507, or 0 for "
        "what the NIC carries",
        config.packet_bytes, kLeast));
  }
}

}  // namespace

Secured secure(const Config& config) {
  Secured secured{.config = without_keys(config), .keys = {}};
  Security& security = secured.config.security;
  if (security == Security::kOff) {
    log().info("packets are not protected: anybody who can send to this process may be a peer");
    return secured;
  }
  JobKeys found = find_job_keys(config);
  launch::JobKey launched;
  if (found.keys.empty() && config.seed == 0) launched = launch::key_of_own_job();
  if (launched.key) found = {{*launched.key}, launched.source};
  if (found.keys.empty()) {
    const bool may_be_alone = security == Security::kDefault && !launched.expected;
    auto loopback = may_be_alone ? loopback_addresses(config) : std::vector<std::string>{};
    if (loopback.empty()) refuse_for_lack_of_a_key(config, launched.problem);
    log().info("packets are not protected, on the loopback alone{}", in_brackets(launched.problem));
    security = Security::kOff;
    secured.config.nics = std::move(loopback);
    return secured;
  }
  check_can_be_protected(config);
  if (security == Security::kDefault) security = Security::kAuthenticate;
  log().info("packets are {}, with a key from {}",
             security == Security::kEncrypt ? "encrypted" : "authenticated", found.source);
  secured.keys = std::move(found.keys);
  return secured;
}

}  // namespace pullman
