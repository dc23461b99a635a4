// Derives keys from a key: HKDF with SHA-256 (RFC 5869), by libcrypto's HMAC.
//
// Deriving the same key again gives the same bytes, so keys need not be kept. One thread at a time
// may use an object.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace pullman::crypto {

class KeyDerivation {
 public:
  static constexpr std::size_t kHashBytes = 32;
  static constexpr std::size_t kMaxBytes = 255 * kHashBytes;  // of one output (RFC 5869, 2.3)

  // Extracts a pseudorandom key from `secret` (RFC 5869, 2.2). Different salts make independent
  // keys of one secret.
  KeyDerivation(std::span<const std::byte> salt, std::span<const std::byte> secret);
  ~KeyDerivation();
  KeyDerivation(const KeyDerivation&) = delete;
  KeyDerivation& operator=(const KeyDerivation&) = delete;

  // Fills `out`, at most kMaxBytes, with the key that `info` names (RFC 5869, 2.3).
  void expand(std::span<const std::byte> info, std::span<std::byte> out);

 private:
  struct Hmac;
  std::unique_ptr<Hmac> hmac_;  // keyed with the pseudorandom key
};

}  // namespace pullman::crypto
