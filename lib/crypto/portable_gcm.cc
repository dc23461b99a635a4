#include "crypto/portable_gcm.h"

#include <openssl/evp.h>

#include <memory>

#include "base/check.h"

namespace pullman::crypto {
namespace {

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

const unsigned char* octets_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// One packet, sealed or opened. What goes wrong here is for want of memory.
class Operation {
 public:
  Operation(const Secret<32>& key, std::span<const std::byte, 12> nonce, bool seals)
      : context_(EVP_CIPHER_CTX_new()) {
    PULLMAN_CHECK(context_ != nullptr);
    PULLMAN_CHECK(EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr,
                                    octets_of(key.bytes()), octets_of(nonce), seals ? 1 : 0) == 1);
  }

  // Without `out` the bytes stay in clear.
  void add(std::span<const std::byte> bytes, std::byte* out) {
    if (bytes.empty()) return;
    int written = 0;
    PULLMAN_CHECK(EVP_CipherUpdate(context_.get(), reinterpret_cast<unsigned char*>(out), &written,
                                   octets_of(bytes), static_cast<int>(bytes.size())) == 1);
  }
  void expect(std::span<const std::byte, 16> tag) {
    auto* const right = const_cast<std::byte*>(tag.data());
    PULLMAN_CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, 16, right) == 1);
  }
  // Returns false if the tag is not the one expected.
  bool finish() {
    int written = 0;
    unsigned char none[16];
    return EVP_CipherFinal_ex(context_.get(), none, &written) == 1;
  }
  void take_tag(std::span<std::byte, 16> tag) {
    PULLMAN_CHECK(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) == 1);
  }

 private:
  std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context_;
};

}  // namespace

void PortableGcm::seal(std::span<const std::byte, 12> nonce, std::span<const std::byte> clear,
                       std::span<const std::byte> plain, std::byte* out,
                       std::span<std::byte, 16> tag) const {
  Operation operation(key_, nonce, true);
  operation.add(clear, nullptr);
  operation.add(plain, out);
  PULLMAN_CHECK(operation.finish());
  operation.take_tag(tag);
}

bool PortableGcm::open(std::span<const std::byte, 12> nonce, std::span<const std::byte> clear,
                       std::span<std::byte> sealed, std::span<const std::byte, 16> tag) const {
  Operation operation(key_, nonce, false);
  operation.expect(tag);
  operation.add(clear, nullptr);
  operation.add(sealed, sealed.data());
  return operation.finish();
}

}  // namespace pullman::crypto
