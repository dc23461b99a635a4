#include "crypto/packet_cipher.h"

// Without this its header defines words such as GCM and ENCRYPT as macros.
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "base/check.h"

namespace pullman::crypto {
namespace {

// The library's functions for this processor. Those for GCM keep nothing between two calls.
const IMB_MGR& functions() {
  struct Manager {
    Manager() {
      PULLMAN_CHECK(manager != nullptr);
      init_mb_mgr_auto(manager, nullptr);
      PULLMAN_CHECK(imb_get_errno(manager) == 0);
    }
    // It is never freed: a static object's destructor may still send.
    IMB_MGR* manager = alloc_mb_mgr(0);
  };
  static const Manager one;
  return *one.manager;
}

const std::uint8_t* octets(const std::byte* bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}
std::uint8_t* octets(std::byte* bytes) {
  return reinterpret_cast<std::uint8_t*>(bytes);
}

}  // namespace

struct PacketCipher::Schedule {
  explicit Schedule(const CipherKey& from) {
    const IMB_MGR& library = functions();
    IMB_AES256_GCM_PRE(&library, octets(from.bytes().data()), &key);
  }
  ~Schedule() { OPENSSL_cleanse(&key, sizeof key); }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  gcm_key_data key;
};

PacketCipher::PacketCipher(const CipherKey& key)
    : schedule_(std::make_shared<const Schedule>(key)) {}

void PacketCipher::authenticate(const Nonce& nonce, std::span<const std::byte> clear,
                                Tag tag) const {
  seal(nonce, clear, {}, nullptr, tag);
}

void PacketCipher::seal(const Nonce& nonce, std::span<const std::byte> clear,
                        std::span<const std::byte> plain, std::byte* out, Tag tag) const {
  gcm_context_data work;
  const IMB_MGR& library = functions();
  IMB_AES256_GCM_ENC(&library, &schedule_->key, &work, octets(out), octets(plain.data()),
                     plain.size(), octets(nonce.data()), octets(clear.data()), clear.size(),
                     octets(tag.data()), kTagBytes);
}

bool PacketCipher::is_authentic(const Nonce& nonce, std::span<const std::byte> clear,
                                ReceivedTag tag) const {
  return open(nonce, clear, {}, tag);
}

bool PacketCipher::open(const Nonce& nonce, std::span<const std::byte> clear,
                        std::span<std::byte> sealed, ReceivedTag tag) const {
  gcm_context_data work;
  std::array<std::byte, kTagBytes> right;
  const IMB_MGR& library = functions();
  IMB_AES256_GCM_DEC(&library, &schedule_->key, &work, octets(sealed.data()), octets(sealed.data()),
                     sealed.size(), octets(nonce.data()), octets(clear.data()), clear.size(),
                     octets(right.data()), kTagBytes);
  return CRYPTO_memcmp(right.data(), tag.data(), kTagBytes) == 0;
}

}  // namespace pullman::crypto
