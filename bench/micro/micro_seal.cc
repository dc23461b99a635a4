// What a tag costs, and to encrypt: by the IPsec multi-buffer library, which packets are sealed
// with, and by libcrypto (decision 0028). Also jobs for many packets at a time.
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

// Without this its header defines words such as GCM and ENCRYPT as macros.
#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
#include <openssl/evp.h>

#include "crypto/packet_cipher.h"
#include "micro/run.h"

namespace pullman::bench {
namespace {

constexpr std::size_t kBurst = 44;  // packets of an Ethernet frame each in the longest burst
constexpr std::size_t kMaxBytes = 1408;

// Packets one behind the other, as they stand in a burst.
struct Packets {
  explicit Packets(std::size_t size) : bytes(kBurst * (size + crypto::kTagBytes)), each(size) {}
  std::span<std::byte> packet(std::size_t i) {
    return {bytes.data() + i * (each + crypto::kTagBytes), each};
  }
  crypto::Tag tag(std::size_t i) { return crypto::Tag(packet(i).data() + each, crypto::kTagBytes); }

  std::vector<std::byte> bytes;
  std::size_t each;
};

crypto::CipherKey key() {
  std::array<std::byte, 32> bytes{};
  bytes.fill(std::byte{7});
  return crypto::CipherKey(bytes);
}

crypto::Nonce nonce(std::uint64_t number) {
  crypto::Nonce out{};
  std::memcpy(out.data(), &number, sizeof number);
  return out;
}

// libcrypto as fast as it can be had: the cipher is fetched, its key and the nonce's length are set
// once.
class Evp {
 public:
  explicit Evp(const crypto::CipherKey& secret)
      : cipher_(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr), EVP_CIPHER_free),
        context_(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free) {
    EVP_EncryptInit_ex2(context_.get(), cipher_.get(), octets(secret.bytes().data()), nullptr,
                        nullptr);
    EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_IVLEN, sizeof(crypto::Nonce), nullptr);
  }

  void seal(const crypto::Nonce& nonce, std::span<const std::byte> clear,
            std::span<const std::byte> plain, std::byte* out, crypto::Tag tag) const {
    EVP_CIPHER_CTX* const context = context_.get();
    int length = 0;
    EVP_EncryptInit_ex2(context, nullptr, nullptr, octets(nonce.data()), nullptr);
    EVP_EncryptUpdate(context, nullptr, &length, octets(clear.data()),
                      static_cast<int>(clear.size()));
    if (!plain.empty()) {
      EVP_EncryptUpdate(context, reinterpret_cast<unsigned char*>(out), &length,
                        octets(plain.data()), static_cast<int>(plain.size()));
    }
    EVP_EncryptFinal_ex(context, reinterpret_cast<unsigned char*>(out), &length);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, crypto::kTagBytes, tag.data());
  }

 private:
  static const unsigned char* octets(const std::byte* bytes) {
    return reinterpret_cast<const unsigned char*>(bytes);
  }

  std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_;
};

// Each packet of a burst gets its tag, or is encrypted in place, too; counts packets.
template <typename Cipher, bool kEncrypts, std::size_t kBytes>
void seal(benchmark::State& state) {
  const Cipher cipher(key());
  Packets packets(kBytes);
  std::uint64_t number = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      const std::span<std::byte> packet = packets.packet(i);
      const auto head = packet.first(kEncrypts ? 32 : packet.size());
      const auto body = packet.subspan(head.size());
      cipher.seal(nonce(++number), head, body, body.data(), packets.tag(i));
    }
    benchmark::DoNotOptimize(packets.bytes.data());
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * kBurst);
}

// The same by the library's jobs, which it may work on together.
template <bool kEncrypts, std::size_t kBytes>
void seal_by_jobs(benchmark::State& state) {
  IMB_MGR* const manager = alloc_mb_mgr(0);
  init_mb_mgr_auto(manager, nullptr);
  alignas(64) gcm_key_data schedule;
  const crypto::CipherKey secret = key();
  IMB_AES256_GCM_PRE(manager, reinterpret_cast<const std::uint8_t*>(secret.bytes().data()),
                     &schedule);
  Packets packets(kBytes);
  std::vector<crypto::Nonce> nonces(kBurst);
  std::uint64_t number = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      nonces[i] = nonce(++number);
      const std::span<std::byte> packet = packets.packet(i);
      const std::size_t head = kEncrypts ? 32 : packet.size();
      auto* const bytes = reinterpret_cast<std::uint8_t*>(packet.data());
      IMB_JOB* const job = IMB_GET_NEXT_JOB(manager);
      job->cipher_mode = IMB_CIPHER_GCM;
      job->hash_alg = IMB_AUTH_AES_GMAC;
      job->cipher_direction = IMB_DIR_ENCRYPT;
      job->chain_order = IMB_ORDER_CIPHER_HASH;
      job->enc_keys = job->dec_keys = &schedule;
      job->key_len_in_bytes = 32;
      job->src = bytes + head;
      job->dst = bytes + head;
      job->cipher_start_src_offset_in_bytes = 0;
      job->msg_len_to_cipher_in_bytes = packet.size() - head;
      job->hash_start_src_offset_in_bytes = 0;
      job->msg_len_to_hash_in_bytes = packet.size() - head;
      job->iv = reinterpret_cast<const std::uint8_t*>(nonces[i].data());
      job->iv_len_in_bytes = sizeof nonces[i];
      job->u.GCM.aad = bytes;
      job->u.GCM.aad_len_in_bytes = head;
      job->auth_tag_output = reinterpret_cast<std::uint8_t*>(packets.tag(i).data());
      job->auth_tag_output_len_in_bytes = crypto::kTagBytes;
      IMB_SUBMIT_JOB(manager);
    }
    while (IMB_FLUSH_JOB(manager) != nullptr) {
    }
    benchmark::DoNotOptimize(packets.bytes.data());
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()) * kBurst);
  free_mb_mgr(manager);
}

template <bool kEncrypts, std::size_t kBytes>
void list(std::vector<Case>& out) {
  const std::string what =
      std::string(kEncrypts ? "encrypt_" : "authenticate_") + std::to_string(kBytes);
  out.push_back({"seal/libcrypto/" + what, seal<Evp, kEncrypts, kBytes>});
  out.push_back({"seal/ipsec_mb/" + what, seal<crypto::PacketCipher, kEncrypts, kBytes>});
  out.push_back({"seal/ipsec_mb_jobs/" + what, seal_by_jobs<kEncrypts, kBytes>});
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  std::vector<Case> cases;
  list<false, 64>(cases);
  list<false, 256>(cases);
  list<false, kMaxBytes>(cases);
  list<true, 64>(cases);
  list<true, 256>(cases);
  list<true, kMaxBytes>(cases);
  return run(argc, argv, cases);
}
