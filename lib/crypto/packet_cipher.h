// Seals packets and opens them: AES-256-GCM (NIST SP 800-38D) with tags of 16 bytes, by the IPsec
// multi-buffer library, which takes an eighth of libcrypto's time for a small packet
// (decision 0028), or by libcrypto where the processor has no AES.
//
// Knows keys and bytes. Does not know what a packet is, nor whether a nonce was used before.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "crypto/secret.h"

namespace pullman::crypto {

using CipherKey = Secret<32>;
// No two packets that are sealed under one key may have one nonce: an attacker who has both can
// forge others (SP 800-38D, 8 and appendix A).
using Nonce = std::array<std::byte, 12>;
inline constexpr std::size_t kTagBytes = 16;
using Tag = std::span<std::byte, kTagBytes>;
using ReceivedTag = std::span<const std::byte, kTagBytes>;

// Any number of threads may call the functions of one object at a time. Where the processor has AES
// nothing is allocated but by the constructor. Copies share what the cipher needs of the key, which
// is wiped with the last.
class PacketCipher {
 public:
  explicit PacketCipher(const CipherKey& key);

  // Writes the tag of a packet that stays in clear (GMAC).
  void authenticate(const Nonce& nonce, std::span<const std::byte> clear, Tag tag) const;
  // Encrypts `plain` to `out`, which has as many bytes and is the same or does not overlap; writes
  // the tag of both, the bytes in clear and the encrypted ones.
  void seal(const Nonce& nonce, std::span<const std::byte> clear, std::span<const std::byte> plain,
            std::byte* out, Tag tag) const;

  // Returns whether the tag is that of a packet in clear.
  [[nodiscard]] bool is_authentic(const Nonce& nonce, std::span<const std::byte> clear,
                                  ReceivedTag tag) const;
  // Decrypts `sealed` in place and returns whether the tag is right. If not, what stands in
  // `sealed` must not be used.
  [[nodiscard]] bool open(const Nonce& nonce, std::span<const std::byte> clear,
                          std::span<std::byte> sealed, ReceivedTag tag) const;

 private:
  struct Schedule;  // what the cipher needs of the key
  std::shared_ptr<const Schedule> schedule_;
};

}  // namespace pullman::crypto
