// Seals what an engine sends and opens what it receives, with keys that only its job has (wire.md
// 12).
//
// A key is derived for each direction, rail and phase of a connection from what both ends told in
// HELLO and WELCOME, so nothing of it need be kept: ciphers of rails that are not in use are
// dropped. Initial packets (HELLO, WELCOME, CHECK) are sealed with a key of their engine.
// Knows peers and rails as names of keys; does not judge what a packet says.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/aligned_bytes.h"
#include "base/keyed_random.h"
#include "base/time.h"
#include "channel/protector.h"
#include "crypto/key_derivation.h"
#include "engine/peer/peer_table.h"
#include "engine/peer/rail_ciphers.h"

namespace pullman::engine {

using JobKey = crypto::Secret<32>;

class PacketProtection final : public channel::Protector {
 public:
  // At most so many keys may be in use at a time.
  static constexpr std::size_t kMaxKeys = 4;

  // `protection` is not kOff. The first of `keys` is for peers that we call, until one that does
  // not answer is called with the next; peers may use any. `epoch` names this engine.
  PacketProtection(wire::Protection protection, std::span<const JobKey> keys, std::uint64_t epoch,
                   KeyedRandom& random, const PeerTable& peers);

  wire::Protection mode() const { return mode_; }
  std::size_t keys() const { return keys_.size(); }

  // Drops the ciphers of rails that are not in use.
  void begin_turn(Instant now) {
    now_ = now;
    if (!used_.empty() && now >= sweep_due_) [[unlikely]]
      drop_unused();
  }

  std::size_t seal(const channel::Origin& origin, std::span<const std::byte> head,
                   std::span<const std::byte> payload, std::byte* out) override;
  std::span<std::byte> room() override { return {room_.get(), kRoomBytes}; }

  // Open the datagram of a packet: its body is decrypted in place, if it is encrypted. Return false
  // if it was not sealed with our key, or was changed since: its content means nothing then.
  [[nodiscard]] bool open(Rail& rail, const wire::PacketHeader& header,
                          std::span<const std::byte> datagram);
  // The same for an initial packet that is protected in this mode. Returns the number of the key.
  [[nodiscard]] std::optional<std::uint8_t> open_initial(std::span<const std::byte> datagram,
                                                         wire::Protection mode);

 private:
  static constexpr std::size_t kRoomBytes = std::size_t{4} * 65536;
  static constexpr Duration kUnused = std::chrono::seconds(1);
  using Salt = std::array<std::byte, wire::kSaltBytes>;

  // One key of the job, and the cipher of our initial packets under it.
  struct Key {
    Key(const JobKey& secret, const Salt& salt, wire::Protection mode);

    crypto::KeyDerivation derivation;
    crypto::PacketCipher initial;
  };

  // A number that a packet has, and what of its key's name it tells.
  struct Numbered {
    bool sends = false;
    bool control = false;
    PacketNumber number = 0;
  };

  void seal_packet(const crypto::PacketCipher& with, const wire::Nonce& nonce,
                   std::span<std::byte> packet, std::byte* tag) const;
  static bool open_packet(wire::Protection mode, const crypto::PacketCipher& with,
                          const wire::Nonce& nonce, std::span<const std::byte> packet,
                          const std::byte* tag);
  static wire::Nonce nonce_of(const Numbered& numbers) {
    return wire::nonce_of(numbers.control, numbers.number);
  }
  static Numbered numbers_of(const Rail& rail, const wire::PacketHeader& header);
  const crypto::PacketCipher& cipher_to_send(Rail& rail, const Numbered& numbers);
  bool open_first(Rail& rail, const Numbered& numbers, std::span<const std::byte> packet);
  RailCiphers& ciphers_of(Rail& rail);
  void note_used(RailCiphers& ciphers);
  crypto::PacketCipher derive(const Rail& rail, const Numbered& numbers, std::uint8_t key);
  void drop_unused();

  const wire::Protection mode_;
  const std::uint64_t epoch_;
  const PeerTable& peers_;
  Salt salt_{};  // names the keys of our initial packets
  std::deque<Key> keys_;
  PacketNumber initials_sealed_ = 0;  // sealed so far
  boost::intrusive::list<RailCiphers, boost::intrusive::base_hook<UseHook>,
                         boost::intrusive::constant_time_size<false>>
      used_;  // the one used last is the last
  Instant now_{};
  Instant sweep_due_{};
  AlignedBytes room_;
};

}  // namespace pullman::engine
