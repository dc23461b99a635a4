#include "context/identity.h"

#include <span>

#include "crypto/random.h"
#include "nic/own_host.h"
#include "pullman/status.h"

namespace pullman {
namespace {

// Returns a random key from the kernel, or one from Config::seed if a test sets it.
KeyedRandom::Key key_for(const Config& config) {
  if (config.seed != 0) return KeyedRandom::key_from_seed(config.seed);
  KeyedRandom::Key key;
  if (!crypto::fill_randomly(std::as_writable_bytes(std::span(key)))) {
    throw Error(Status::kNoDevice, "the kernel gave no random bytes: getrandom() failed");
  }
  return key;
}

}  // namespace

engine::Identity identity_of(const Secured& secured, shm::Pairs& pairs) {
  engine::Identity identity{
      .key = key_for(secured.config), .host = nic::own_host(), .pairs = &pairs};
  if (secured.keys.empty()) return identity;
  const bool encrypt = secured.config.security == Config::Security::kEncrypt;
  identity.protection = encrypt ? wire::Protection::kEncrypt : wire::Protection::kAuthenticate;
  identity.job_keys = secured.keys;
  return identity;
}

}  // namespace pullman
