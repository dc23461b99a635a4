#include "crypto/pass_phrase.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace pullman::crypto {

Secret<32> key_from(std::string_view words) {
  // All who have the words must get the same key without a word between them, so the salt is fixed.
  constexpr std::string_view kSalt = "pullman pass phrase 1";
  constexpr std::uint64_t kCost = 1 << 15;
  constexpr std::uint64_t kBlock = 8;
  constexpr std::uint64_t kAtOnce = 1;
  constexpr std::uint64_t kMaxMemory = std::uint64_t{64} << 20;
  Secret<32> key;
  PULLMAN_CHECK(EVP_PBE_scrypt(words.data(), words.size(),
                               reinterpret_cast<const unsigned char*>(kSalt.data()), kSalt.size(),
                               kCost, kBlock, kAtOnce, kMaxMemory,
                               reinterpret_cast<unsigned char*>(key.bytes().data()),
                               key.bytes().size()) == 1);
  return key;
}

}  // namespace pullman::crypto
