// Decides how a context protects its packets, and with which keys (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "crypto/secret.h"
#include "pullman/config.h"

namespace pullman {

struct Secured {
  Config config;                         // holds no key, and its `security` is not kDefault
  std::vector<crypto::Secret<32>> keys;  // none: packets are not protected
};

// Takes the keys that the process was given, else the key of the launcher. Without a key only
// contexts that no other host can reach may leave packets unprotected without saying so.
// Throws Error(kBadOption) with what to do if there is no key, or it cannot be used; and
// nic::NicError if the NICs had to be looked at and there is no such driver.
Secured secure(const Config& config);

}  // namespace pullman
