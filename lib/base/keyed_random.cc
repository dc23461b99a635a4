#include "base/keyed_random.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace pullman {

struct KeyedRandom::Cipher {
  EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
  Cipher() = default;
  ~Cipher() { EVP_CIPHER_CTX_free(context); }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;
};

KeyedRandom::Key KeyedRandom::key_from_seed(std::uint64_t seed) {
  Key key{};
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof seed>>(seed);
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

KeyedRandom::KeyedRandom(const Key& key) : cipher_(std::make_unique<Cipher>()) {
  const std::array<unsigned char, 16> counter_and_nonce{};
  PULLMAN_CHECK(cipher_->context != nullptr);
  PULLMAN_CHECK(EVP_EncryptInit_ex(cipher_->context, EVP_chacha20(), nullptr,
                                   reinterpret_cast<const unsigned char*>(key.data()),
                                   counter_and_nonce.data()) == 1);
}

KeyedRandom::~KeyedRandom() = default;

// Encrypts zeros, which gives the keystream.
void KeyedRandom::refill() {
  words_.fill(0);
  auto* bytes = reinterpret_cast<unsigned char*>(words_.data());
  int length = 0;
  const int wanted = static_cast<int>(sizeof words_);
  PULLMAN_CHECK(EVP_EncryptUpdate(cipher_->context, bytes, &length, bytes, wanted) == 1);
  PULLMAN_CHECK(length == wanted);
  used_ = 0;
}

void KeyedRandom::fill(std::span<std::byte> bytes) {
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(std::uint64_t))) {
    const std::uint64_t part = next();
    PULLMAN_CHECK(bytes.size() >= sizeof part);
    std::memcpy(bytes.data(), &part, sizeof part);
  }
}

std::uint64_t KeyedRandom::next() {
  if (used_ == words_.size()) refill();
  return words_[used_++];
}

}  // namespace pullman
