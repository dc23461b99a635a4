// Bytes that nobody else may see: keys, and what keys are made of. They are wiped when they are
// destroyed, compared in constant time, and never printed.
#pragma once

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace pullman::crypto {

// Overwrites bytes that may not be seen any more, even if nothing reads them again.
inline void wipe(std::span<std::byte> bytes) {
  OPENSSL_cleanse(bytes.data(), bytes.size());
}

template <std::size_t Bytes>
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const std::byte, Bytes> bytes) {
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
  }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes_); }

  std::span<const std::byte, Bytes> bytes() const { return bytes_; }
  std::span<std::byte, Bytes> bytes() { return bytes_; }

  bool operator==(const Secret& other) const {
    return CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), Bytes) == 0;
  }

 private:
  std::array<std::byte, Bytes> bytes_{};
};

}  // namespace pullman::crypto
