#include "crypto/packet_cipher.h"

// Without this its header defines words such as GCM and ENCRYPT as macros.
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <optional>

#include "base/check.h"
#include "crypto/portable_gcm.h"

namespace pullman::crypto {
namespace {

// Returns the multi-buffer library's functions for this processor, of which those for GCM keep
// nothing between two calls; nullptr if it has none: Debian builds it without those for processors
// without AES.
const IMB_MGR* find_functions() {
  // It is never freed: a static object's destructor may still send.
  IMB_MGR* const manager = alloc_mb_mgr(0);
  PULLMAN_CHECK(manager != nullptr);
  if ((manager->features & IMB_CPUFLAGS_SSE) != IMB_CPUFLAGS_SSE) return nullptr;
  init_mb_mgr_auto(manager, nullptr);
  PULLMAN_CHECK(imb_get_errno(manager) == 0);
  return manager;
}
const IMB_MGR* functions() {
  static const IMB_MGR* const found = find_functions();
  return found;
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
    if (functions() != nullptr) {
      IMB_AES256_GCM_PRE(functions(), octets(from.bytes().data()), &key);
    } else {
      portable.emplace(from);
    }
  }
  ~Schedule() { OPENSSL_cleanse(&key, sizeof key); }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  alignas(64) gcm_key_data key;         // the library takes whole lines of the cache at a time
  std::optional<PortableGcm> portable;  // in its place
};

PacketCipher::PacketCipher(const CipherKey& key)
    : schedule_(std::make_shared<const Schedule>(key)) {}

void PacketCipher::authenticate(const Nonce& nonce, std::span<const std::byte> clear,
                                Tag tag) const {
  seal(nonce, clear, {}, nullptr, tag);
}

void PacketCipher::seal(const Nonce& nonce, std::span<const std::byte> clear,
                        std::span<const std::byte> plain, std::byte* out, Tag tag) const {
  if (schedule_->portable) [[unlikely]]
    return schedule_->portable->seal(nonce, clear, plain, out, tag);
  gcm_context_data work;
  IMB_AES256_GCM_ENC(functions(), &schedule_->key, &work, octets(out), octets(plain.data()),
                     plain.size(), octets(nonce.data()), octets(clear.data()), clear.size(),
                     octets(tag.data()), kTagBytes);
}

bool PacketCipher::is_authentic(const Nonce& nonce, std::span<const std::byte> clear,
                                ReceivedTag tag) const {
  return open(nonce, clear, {}, tag);
}

bool PacketCipher::open(const Nonce& nonce, std::span<const std::byte> clear,
                        std::span<std::byte> sealed, ReceivedTag tag) const {
  if (schedule_->portable) [[unlikely]]
    return schedule_->portable->open(nonce, clear, sealed, tag);
  gcm_context_data work;
  std::array<std::byte, kTagBytes> right;
  IMB_AES256_GCM_DEC(functions(), &schedule_->key, &work, octets(sealed.data()),
                     octets(sealed.data()), sealed.size(), octets(nonce.data()),
                     octets(clear.data()), clear.size(), octets(right.data()), kTagBytes);
  return CRYPTO_memcmp(right.data(), tag.data(), kTagBytes) == 0;
}

}  // namespace pullman::crypto
