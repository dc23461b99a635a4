// AES-256-GCM by libcrypto: for processors without the instructions that the multi-buffer library
// needs. It is slower by far, and allocates.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "crypto/secret.h"

namespace pullman::crypto {

// What it does and who may call it is as with PacketCipher.
class PortableGcm {
 public:
  explicit PortableGcm(const Secret<32>& key) : key_(key) {}

  void seal(std::span<const std::byte, 12> nonce, std::span<const std::byte> clear,
            std::span<const std::byte> plain, std::byte* out, std::span<std::byte, 16> tag) const;
  [[nodiscard]] bool open(std::span<const std::byte, 12> nonce, std::span<const std::byte> clear,
                          std::span<std::byte> sealed, std::span<const std::byte, 16> tag) const;

 private:
  const Secret<32> key_;
};

}  // namespace pullman::crypto
