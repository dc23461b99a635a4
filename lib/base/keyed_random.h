// Random bits that cannot be predicted without the key, however many have been seen: the keystream
// of ChaCha20 (RFC 8439), by libcrypto. For all secrets that leave the process, such as proofs.
//
// The same key gives the same bits, so a simulation replays. Reads neither kernel nor clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pullman {

class KeyedRandom {
 public:
  using Key = std::array<std::byte, 32>;
  // Returns a key for tests and simulations, which is as easy to guess as its seed.
  static Key key_from_seed(std::uint64_t seed);

  explicit KeyedRandom(const Key& key);
  ~KeyedRandom();
  KeyedRandom(const KeyedRandom&) = delete;
  KeyedRandom& operator=(const KeyedRandom&) = delete;

  std::uint64_t next();
  // Fills the bytes, a multiple of 8.
  void fill(std::span<std::byte> bytes);

 private:
  struct Cipher;
  void refill();

  std::unique_ptr<Cipher> cipher_;
  std::array<std::uint64_t, 32> words_{};
  std::size_t used_ = words_.size();
};

}  // namespace pullman
