#include "context/identity.h"

#include <sys/random.h>

#include "base/log.h"
#include "context/job_keys.h"
#include "nic/own_host.h"
#include "pullman/status.h"

namespace pullman {
namespace {

// Returns a random key from the kernel, or one from Config::seed if a test sets it.
KeyedRandom::Key key_for(const Config& config) {
  if (config.seed != 0) return KeyedRandom::key_from_seed(config.seed);
  KeyedRandom::Key key;
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    throw Error(Status::kNoDevice, "the kernel gave no random bytes: getrandom() failed");
  }
  return key;
}

}  // namespace

engine::Identity identity_of(const Config& config, shm::Pairs& pairs) {
  engine::Identity identity{.key = key_for(config), .host = nic::own_host(), .pairs = &pairs};
  const JobKeys found = find_job_keys(config);
  if (found.keys.empty()) return identity;
  const bool encrypt = config.security == Config::Security::kEncrypt;
  identity.protection = encrypt ? wire::Protection::kEncrypt : wire::Protection::kAuthenticate;
  identity.job_keys = found.keys;
  log().info("packets are {}, with a key from {}", encrypt ? "encrypted" : "authenticated",
             found.source);
  return identity;
}

}  // namespace pullman
