// The authorization key of an application (fi_domain(3) and fi_endpoint(3): auth_key), of which the
// job's key is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "crypto/secret.h"

namespace pullman::ofi {

// What is shorter can be guessed; what is longer is nobody's.
inline constexpr std::size_t kMinAuthorizationKey = 16;
inline constexpr std::size_t kMaxAuthorizationKey = 4096;

// Returns the job's key; nothing if the application has none. Throws Error(kBadOption) if it is no
// secret.
std::optional<crypto::Secret<32>> job_key_of(const std::uint8_t* authorization_key,
                                             std::size_t bytes);

}  // namespace pullman::ofi
