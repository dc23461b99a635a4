#include "engine/security/packet_protection.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace pullman::engine {

using crypto::CipherKey;
using crypto::Nonce;
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

// The key's bytes come first, then those of the iv.
NumberedCipher cipher_of(crypto::KeyDerivation& derivation, std::span<const std::byte> info) {
  constexpr std::size_t kKeyBytes = 32;
  crypto::Secret<kKeyBytes + std::tuple_size_v<Nonce>> bytes;
  derivation.expand(info, bytes.bytes());
  NumberedCipher made{.cipher = crypto::PacketCipher(CipherKey(bytes.bytes().first<kKeyBytes>())),
                      .iv = {}};
  const auto iv = bytes.bytes().subspan<kKeyBytes>();
  std::copy(iv.begin(), iv.end(), made.iv.begin());
  return made;
}

// wire.md 12.4, RFC 9001 5.3
Nonce nonce_of(const Nonce& iv, std::uint64_t number) {
  Nonce nonce = iv;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(number >> 8 * i);
  }
  return nonce;
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

// Returns the whole number of a packet that came.
PacketNumber number_of(const Rail& rail, const wire::PacketHeader& header) {
  if (header.type == PacketType::kControl) return rail.acks_heard.number_of(header.number);
  return rail.peer.introduced ? rail.link.acks().number_of(header)
                              : pullman::expand(header.number, rail.peer.said->hello.first_number);
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

void PacketProtection::seal_packet(const NumberedCipher& with, PacketNumber number,
                                   std::span<std::byte> packet, std::byte* tag) const {
  const Nonce nonce = nonce_of(with.iv, number);
  const crypto::Tag place(tag, crypto::kTagBytes);
  if (mode_ == wire::Protection::kAuthenticate) {
    return with.cipher.authenticate(nonce, packet, place);
  }
  const std::size_t clear = clear_bytes(packet.front());
  const auto body = packet.subspan(clear);
  with.cipher.seal(nonce, packet.first(clear), body, body.data(), place);
}

// What stands in an encrypted packet that does not open is as it was before.
bool PacketProtection::open_packet(wire::Protection mode, const NumberedCipher& with,
                                   PacketNumber number, std::span<const std::byte> packet,
                                   const std::byte* tag) {
  const Nonce nonce = nonce_of(with.iv, number);
  const crypto::ReceivedTag received(tag, crypto::kTagBytes);
  if (mode == wire::Protection::kAuthenticate) {
    return with.cipher.is_authentic(nonce, packet, received);
  }
  const auto clear = packet.first(clear_bytes(packet.front()));
  const auto body = packet.subspan(clear.size());
  // The bytes are lent to us for as long as we need them (nic::Incoming).
  const std::span<std::byte> writable(const_cast<std::byte*>(body.data()), body.size());
  if (with.cipher.open(nonce, clear, writable, received)) [[likely]]
    return true;
  std::array<std::byte, crypto::kTagBytes> none;
  with.cipher.seal(nonce, clear, writable, writable.data(), none);
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
    seal_packet(key.initial, number, packet, end);
  } else {
    Rail& rail = *peers_.at(origin.peer)->rail(origin.rail);
    const Series series{
        .sends = true, .control = type == PacketType::kControl, .number = origin.number};
    seal_packet(cipher_to_send(rail, series), origin.number, packet, end);
  }
  return static_cast<std::size_t>(end + wire::kTagBytes - out);
}

bool PacketProtection::open(Rail& rail, const wire::PacketHeader& header,
                            std::span<const std::byte> datagram) {
  if (!has_told(rail.peer)) return false;
  const Series series{.control = header.type == PacketType::kControl,
                      .number = number_of(rail, header)};
  const auto packet = wire::packet_in(datagram);
  const std::uint64_t phase = wire::phase_of(series.number);
  if (rail.ciphers == nullptr) [[unlikely]]
    return open_first(rail, series, packet);
  const auto& place = rail.ciphers->receives[series.control][phase % 2];
  if (!place || place->phase != phase) [[unlikely]]
    return open_first(rail, series, packet);
  if (!open_packet(mode_, place->with, series.number, packet, packet.data() + packet.size()))
    return false;
  note_used(*rail.ciphers);
  return true;
}

// Opens a packet for whose numbers there is no cipher. Only one that opens has its cipher kept:
// anybody may send another. What a caller tells of itself may be replaced until it has proved
// itself, so nothing is kept of it.
bool PacketProtection::open_first(Rail& rail, const Series& series,
                                  std::span<const std::byte> packet) {
  Peer& peer = rail.peer;
  const bool known = peer.heard_key != Peer::kAnyKey;
  const auto first = known ? peer.heard_key : std::uint8_t{0};
  const auto end = known ? std::size_t{first} + 1 : keys_.size();
  for (std::uint8_t key = first; key < end; ++key) {
    NumberedCipher with = derive(rail, series, key);
    if (!open_packet(mode_, with, series.number, packet, packet.data() + packet.size())) continue;
    if (!peer.introduced) return true;
    peer.heard_key = key;
    const std::uint64_t phase = wire::phase_of(series.number);
    RailCiphers& ciphers = ciphers_of(rail);
    auto& place = ciphers.receives[series.control][phase % 2];
    // A late packet, or a copy of one, does not displace the cipher in use.
    if (!place || place->phase < phase) place.emplace(PhaseCipher{phase, std::move(with)});
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
  for (std::uint8_t i = 0; i < keys_.size(); ++i) {
    const NumberedCipher with = cipher_of(keys_[i].derivation, info);
    if (open_packet(mode, with, wire::take_number(number), packet,
                    number + sizeof(std::uint64_t))) {
      return i;
    }
  }
  return std::nullopt;
}

const NumberedCipher& PacketProtection::cipher_to_send(Rail& rail, const Series& series) {
  PULLMAN_DCHECK(rail.peer.introduced);
  const std::uint64_t phase = wire::phase_of(series.number);
  RailCiphers& ciphers = ciphers_of(rail);
  note_used(ciphers);
  auto& place = ciphers.sends[series.control];
  if (!place || place->phase != phase) [[unlikely]]
    place.emplace(PhaseCipher{phase, derive(rail, series, rail.peer.key)});
  return place->with;
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

NumberedCipher PacketProtection::derive(const Rail& rail, const Series& series, std::uint8_t key) {
  const Peer& peer = rail.peer;
  const wire::End ours{epoch_, peer.mine, peer.home.link.window().first()};
  const wire::End theirs = other_end(peer);
  const wire::KeyName name{.protection = mode_,
                           .rail = rail.number,
                           .control = series.control,
                           .phase = wire::phase_of(series.number)};
  return cipher_of(keys_[key].derivation, series.sends ? wire::info_of(ours, theirs, name)
                                                       : wire::info_of(theirs, ours, name));
}

void PacketProtection::drop_unused() {
  sweep_due_ = now_ + kUnused / 4;
  while (!used_.empty() && now_ - used_.front().used_at >= kUnused) {
    used_.front().rail.ciphers.reset();
  }
}

}  // namespace pullman::engine
