// Finds the keys of this process' job: in the Config, in a file, or in words (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "crypto/secret.h"
#include "pullman/config.h"

namespace pullman {

struct JobKeys {
  std::vector<crypto::Secret<32>> keys;  // none: packets are not protected
  std::string source;                    // for the log
};

// Returns a copy that holds no key, and whose `security` is not kDefault.
Config without_keys(const Config& config);

// Throws Error(kBadOption) if a key is there and cannot be used. Its sentence says what to do, and
// nothing of the key.
JobKeys find_job_keys(const Config& config);

}  // namespace pullman
