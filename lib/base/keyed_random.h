// Random bits nobody without the key can predict, however many of them he has seen: the keystream
// of ChaCha20 (RFC 8439), by libcrypto. For whatever leaves the process as a proof.
//
// The same key gives the same bits, so a simulation replays. Reads neither kernel nor clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pullman {

class KeyedRandom {
 public:
  using Key = std::array<std::byte, 32>;
  // A key for tests and simulations: as easily guessed as its seed.
  static Key key_from_seed(std::uint64_t seed);

  explicit KeyedRandom(const Key& key);
  ~KeyedRandom();
  KeyedRandom(const KeyedRandom&) = delete;
  KeyedRandom& operator=(const KeyedRandom&) = delete;

  std::uint64_t next();

 private:
  struct Cipher;
  void refill();

  std::unique_ptr<Cipher> cipher_;
  std::array<std::uint64_t, 32> words_{};
  std::size_t used_ = words_.size();
};

}  // namespace pullman
