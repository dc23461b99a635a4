#include "crypto/key_derivation.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "crypto/secret.h"

namespace pullman::crypto {
namespace {

using Hash = Secret<KeyDerivation::kHashBytes>;

const unsigned char* as_octets(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

// HMAC with SHA-256 under one key. libcrypto keeps the state behind the key, so a new message costs
// only its own blocks.
struct KeyDerivation::Hmac {
  struct Free {
    void operator()(EVP_MAC* one) const { EVP_MAC_free(one); }
    void operator()(EVP_MAC_CTX* one) const { EVP_MAC_CTX_free(one); }
  };

  explicit Hmac(std::span<const std::byte> key)
      : mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr)), context(EVP_MAC_CTX_new(mac.get())) {
    char digest[] = "SHA256";
    const OSSL_PARAM options[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end()};
    PULLMAN_CHECK(context != nullptr);
    PULLMAN_CHECK(EVP_MAC_init(context.get(), as_octets(key), key.size(), options) == 1);
  }

  void begin() { PULLMAN_CHECK(EVP_MAC_init(context.get(), nullptr, 0, nullptr) == 1); }
  void add(std::span<const std::byte> bytes) {
    PULLMAN_CHECK(EVP_MAC_update(context.get(), as_octets(bytes), bytes.size()) == 1);
  }
  void finish(Hash& out) {
    std::size_t length = 0;
    auto* bytes = reinterpret_cast<unsigned char*>(out.bytes().data());
    PULLMAN_CHECK(EVP_MAC_final(context.get(), bytes, &length, kHashBytes) == 1);
    PULLMAN_CHECK(length == kHashBytes);
  }

  std::unique_ptr<EVP_MAC, Free> mac;
  std::unique_ptr<EVP_MAC_CTX, Free> context;
};

KeyDerivation::KeyDerivation(std::span<const std::byte> salt, std::span<const std::byte> secret) {
  // HMAC pads a short key with zeros, so zeros stand for no salt (RFC 5869, 2.2); libcrypto takes
  // no empty key.
  static constexpr std::byte kNoSalt[kHashBytes] = {};
  Hmac extract(salt.empty() ? std::span<const std::byte>(kNoSalt) : salt);
  Hash pseudorandom_key;
  extract.begin();
  extract.add(secret);
  extract.finish(pseudorandom_key);
  hmac_ = std::make_unique<Hmac>(pseudorandom_key.bytes());
}

KeyDerivation::~KeyDerivation() = default;

void KeyDerivation::expand(std::span<const std::byte> info, std::span<std::byte> out) {
  PULLMAN_CHECK(out.size() <= kMaxBytes);
  Hash block;
  for (std::uint8_t count = 1; !out.empty(); ++count) {
    const std::byte last{count};
    hmac_->begin();
    if (count > 1) hmac_->add(block.bytes());
    hmac_->add(info);
    hmac_->add({&last, 1});
    hmac_->finish(block);
    const std::size_t taken = std::min(out.size(), kHashBytes);
    std::copy_n(block.bytes().begin(), taken, out.begin());
    out = out.subspan(taken);
  }
}

}  // namespace pullman::crypto
