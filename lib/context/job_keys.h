// Finds the keys of this process' job that it was given: in the Config, in a file, or in words
// (docs/security.md).
#pragma once

#include <string>
#include <vector>

#include "crypto/secret.h"
#include "pullman/config.h"

namespace pullman {

struct JobKeys {
  std::vector<crypto::Secret<32>> keys;  // none if none was given
  std::string source;                    // for the log
};

// Throws Error(kBadOption) if a key is there and cannot be used. Its sentence says what to do, and
// nothing of the key.
JobKeys find_job_keys(const Config& config);

}  // namespace pullman
