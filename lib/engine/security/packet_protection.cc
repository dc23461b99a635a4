#include "engine/security/packet_protection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace pullman::engine {

using crypto::CipherKey;
using crypto::PacketCipher;
using wire::Nonce;
using wire::PacketType;

namespace {

static_assert(crypto::kTagBytes == wire::kTagBytes);

constexpr std::string_view kSalt = "pullman 1";  // of HKDF-Extract (wire.md 12.3)

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Returns how many bytes of a packet are never encrypted: the header, and of a bulk packet also
// what it has in place of a frame's head.
std::size_t clear_bytes(std::byte first) {
  return wire::type_of(first) == PacketType::kBulk ? wire::kBulkHeadBytes : wire::kHeaderBytes;
}

PacketCipher cipher_of(crypto::KeyDerivation& derivation, std::span<const std::byte> info) {
  CipherKey key;
  derivation.expand(info, key.bytes());
  return PacketCipher(key);
}

// Returns whether the other end has told what keys are made of.
bool has_told(const Peer& peer) {
  return peer.introduced || peer.said != nullptr;
}

// Returns what the other end of the peer's connection told of itself.
wire::End other_end(const Peer& peer) {
  if (peer.introduced) return {peer.epoch, peer.theirs, peer.first_number_there};
  const wire::Hello& hello = peer.said->hello;
  return {hello.epoch, hello.reply_to, hello.first_number};
}

// Returns the first number of our links to the rail's peer.
PacketNumber first_number_of(const Rail& rail) {
  return rail.peer.home.link.window().first();
}

}  // namespace

PacketProtection::Key::Key(const JobKey& secret, const Salt& salt, wire::Protection mode)
    : derivation(bytes_of(kSalt), secret.bytes()),
      initial(cipher_of(derivation, wire::info_of(salt, mode))) {}

PacketProtection::PacketProtection(wire::Protection protection, std::span<const JobKey> keys,
                                   std::uint64_t epoch, KeyedRandom& random, const PeerTable& peers)
    : mode_(protection), epoch_(epoch), peers_(peers), room_(make_aligned_bytes(kRoomBytes)) {
  PULLMAN_CHECK(protection != wire::Protection::kOff && !keys.empty() && keys.size() <= kMaxKeys);
  random.fill(salt_);
  for (const JobKey& key : keys) keys_.emplace_back(key, salt_, mode_);
}

void PacketProtection::seal_packet(const PacketCipher& with, const Nonce& nonce,
                                   std::span<std::byte> packet, std::byte* tag) const {
  const crypto::Tag place(tag, crypto::kTagBytes);
  if (mode_ == wire::Protection::kAuthenticate) {
    return with.authenticate(nonce, packet, place);
  }
  const std::size_t clear = clear_bytes(packet.front());
  const auto body = packet.subspan(clear);
  with.seal(nonce, packet.first(clear), body, body.data(), place);
}

// What stands in an encrypted packet that does not open is as it was before.
bool PacketProtection::open_packet(wire::Protection mode, const PacketCipher& with,
                                   const Nonce& nonce, std::span<const std::byte> packet,
                                   const std::byte* tag) {
  const crypto::ReceivedTag received(tag, crypto::kTagBytes);
  if (mode == wire::Protection::kAuthenticate) {
    return with.is_authentic(nonce, packet, received);
  }
  const auto clear = packet.first(clear_bytes(packet.front()));
  const auto body = packet.subspan(clear.size());
  // The bytes are lent to us for as long as we need them (nic::Incoming).
  const std::span<std::byte> writable(const_cast<std::byte*>(body.data()), body.size());
  if (with.open(nonce, clear, writable, received)) [[likely]]
    return true;
  std::array<std::byte, crypto::kTagBytes> none;
  with.seal(nonce, clear, writable, writable.data(), none);
  return false;
}

std::size_t PacketProtection::seal(const channel::Origin& origin, std::span<const std::byte> head,
                                   std::span<const std::byte> payload, std::byte* out) {
  std::byte* end = std::copy(head.begin(), head.end(), out);
  end = std::copy(payload.begin(), payload.end(), end);
  wire::set_flag(out, static_cast<std::uint8_t>(mode_));
  const std::span<std::byte> packet(out, end);
  const PacketType type = wire::type_of(head.front());
  if (wire::is_initial(type)) [[unlikely]] {
    const Key& key = keys_[origin.key ? *origin.key : peers_.at(origin.peer)->key];
    const PacketNumber number = initials_sealed_++;
    end = std::copy(salt_.begin(), salt_.end(), end);
    end = wire::put_number(end, number);
    seal_packet(key.initial, wire::nonce_of(false, number), packet, end);
  } else {
    Rail& rail = *peers_.at(origin.peer)->rail(origin.rail);
    const bool control = type == PacketType::kControl;
    const PacketNumber before = control ? first_number_of(rail) : 0;
    const Numbered numbers{.sends = true, .control = control, .number = before + origin.number};
    seal_packet(cipher_to_send(rail, numbers), nonce_of(numbers), packet, end);
  }
  return static_cast<std::size_t>(end + wire::kTagBytes - out);
}

// Returns the whole number of a packet that came. Control packets are counted from the same number
// as others, so both series begin with one key.
PacketProtection::Numbered PacketProtection::numbers_of(const Rail& rail,
                                                        const wire::PacketHeader& header) {
  const bool introduced = rail.peer.introduced;
  const PacketNumber first =
      introduced ? rail.peer.first_number_there : rail.peer.said->hello.first_number;
  if (header.type == PacketType::kControl) {
    return {.control = true, .number = first + rail.acks_heard.number_of(header.number)};
  }
  return {.number = introduced ? rail.link.acks().number_of(header)
                               : pullman::expand(header.number, first)};
}

bool PacketProtection::open(Rail& rail, const wire::PacketHeader& header,
                            std::span<const std::byte> datagram) {
  if (!has_told(rail.peer)) return false;
  const Numbered numbers = numbers_of(rail, header);
  const auto packet = wire::packet_in(datagram);
  if (rail.ciphers == nullptr) [[unlikely]]
    return open_first(rail, numbers, packet);
  const std::uint64_t phase = wire::phase_of(numbers.number);
  const auto& place = rail.ciphers->receives[numbers.control][phase % 2];
  if (!place || place->phase != phase) [[unlikely]]
    return open_first(rail, numbers, packet);
  if (!open_packet(mode_, place->cipher, nonce_of(numbers), packet,
                   packet.data() + packet.size())) {
    return false;
  }
  note_used(*rail.ciphers);
  return true;
}

// Opens a packet for whose numbers there is no cipher. Only one that opens has its cipher kept:
// anybody may send another. What a caller tells of itself may be replaced until it has proved
// itself, so nothing is kept of it.
bool PacketProtection::open_first(Rail& rail, const Numbered& numbers,
                                  std::span<const std::byte> packet) {
  Peer& peer = rail.peer;
  const bool known = peer.heard_key != Peer::kAnyKey;
  const auto first = known ? peer.heard_key : std::uint8_t{0};
  const auto end = known ? std::size_t{first} + 1 : keys_.size();
  const Nonce nonce = nonce_of(numbers);
  for (std::uint8_t key = first; key < end; ++key) {
    PacketCipher with = derive(rail, numbers, key);
    if (!open_packet(mode_, with, nonce, packet, packet.data() + packet.size())) continue;
    if (!peer.introduced) return true;
    peer.heard_key = key;
    const std::uint64_t phase = wire::phase_of(numbers.number);
    RailCiphers& ciphers = ciphers_of(rail);
    auto& place = ciphers.receives[numbers.control][phase % 2];
    // A late packet, or a copy of one, does not displace the cipher in use.
    if (!place || place->phase < phase) {
      place.emplace(PhaseCipher{phase, std::move(with)});
    }
    note_used(ciphers);
    return true;
  }
  return false;
}

// Any of the job's keys may have sealed it. Its sender's key is derived anew for each, and nothing
// of it is kept: anybody can make us do so.
std::optional<std::uint8_t> PacketProtection::open_initial(std::span<const std::byte> datagram,
                                                           wire::Protection mode) {
  const auto packet = wire::packet_in(datagram);
  const std::byte* const salt = packet.data() + packet.size();
  const std::byte* const number = salt + wire::kSaltBytes;
  const auto info =
      wire::info_of(std::span<const std::byte, wire::kSaltBytes>(salt, wire::kSaltBytes), mode);
  const Nonce nonce = wire::nonce_of(false, wire::take_number(number));
  for (std::uint8_t i = 0; i < keys_.size(); ++i) {
    const PacketCipher with = cipher_of(keys_[i].derivation, info);
    if (open_packet(mode, with, nonce, packet, number + sizeof(std::uint64_t))) return i;
  }
  return std::nullopt;
}

const PacketCipher& PacketProtection::cipher_to_send(Rail& rail, const Numbered& numbers) {
  PULLMAN_DCHECK(rail.peer.introduced);
  RailCiphers& ciphers = ciphers_of(rail);
  note_used(ciphers);
  const std::uint64_t phase = wire::phase_of(numbers.number);
  auto& place = ciphers.sends[numbers.control];
  if (!place || place->phase != phase) [[unlikely]]
    place.emplace(PhaseCipher{phase, derive(rail, numbers, rail.peer.key)});
  return place->cipher;
}

RailCiphers& PacketProtection::ciphers_of(Rail& rail) {
  if (rail.ciphers == nullptr) [[unlikely]] {
    rail.ciphers = std::make_unique<RailCiphers>(rail);
    used_.push_back(*rail.ciphers);
    rail.ciphers->used_at = now_;
  }
  return *rail.ciphers;
}

// A packet need not be noted if another was not long before.
void PacketProtection::note_used(RailCiphers& ciphers) {
  if (now_ - ciphers.used_at < kUnused / 8) [[likely]]
    return;
  ciphers.used_at = now_;
  used_.splice(used_.end(), used_, used_.iterator_to(ciphers));
}

// Both series of a rail have one key for one phase, so the other one's cipher may be there.
PacketCipher PacketProtection::derive(const Rail& rail, const Numbered& numbers, std::uint8_t key) {
  const std::uint64_t phase = wire::phase_of(numbers.number);
  if (rail.ciphers != nullptr) {
    const auto& other = numbers.sends ? rail.ciphers->sends[!numbers.control]
                                      : rail.ciphers->receives[!numbers.control][phase % 2];
    if (other && other->phase == phase) return other->cipher;
  }
  const Peer& peer = rail.peer;
  const wire::End ours{epoch_, peer.mine, first_number_of(rail)};
  const wire::End theirs = other_end(peer);
  const wire::KeyName name{.protection = mode_, .rail = rail.number, .phase = phase};
  return cipher_of(keys_[key].derivation, numbers.sends ? wire::info_of(ours, theirs, name)
                                                        : wire::info_of(theirs, ours, name));
}

void PacketProtection::drop_unused() {
  sweep_due_ = now_ + kUnused / 4;
  while (!used_.empty() && now_ - used_.front().used_at >= kUnused) {
    used_.front().rail.ciphers.reset();
  }
}

}  // namespace pullman::engine
