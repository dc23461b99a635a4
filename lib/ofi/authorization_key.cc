#include "ofi/authorization_key.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>

#include "crypto/key_derivation.h"
#include "launch/public_values.h"
#include "pullman/status.h"

namespace pullman::ofi {

std::optional<crypto::Secret<32>> job_key_of(const std::uint8_t* authorization_key,
                                             std::size_t bytes) {
  constexpr std::string_view kSalt = "pullman auth_key 1";
  if (bytes == 0) return std::nullopt;
  if (authorization_key == nullptr || bytes < kMinAuthorizationKey ||
      bytes > kMaxAuthorizationKey) {
    throw Error(Status::kBadOption, fmt::format("an auth_key has {} to {} bytes, and random ones",
                                                kMinAuthorizationKey, kMaxAuthorizationKey));
  }
  const auto value = std::as_bytes(std::span(authorization_key, bytes));
  const std::string why = launch::why_no_secret(value);
  if (!why.empty()) throw Error(Status::kBadOption, fmt::format("the auth_key {}", why));
  crypto::Secret<32> key;
  crypto::KeyDerivation(std::as_bytes(std::span(kSalt)), value).expand({}, key.bytes());
  return key;
}

}  // namespace pullman::ofi
