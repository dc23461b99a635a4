// lib/crypto against published vectors, and what it must refuse.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "crypto/key_derivation.h"
#include "crypto/packet_cipher.h"
#include "crypto/portable_gcm.h"
#include "crypto/secret.h"

namespace pullman::crypto {
namespace {

using Bytes = std::vector<std::byte>;

Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
  }
  return bytes;
}

template <typename Fixed>
Fixed fixed(const Bytes& bytes) {
  Fixed out{};
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

CipherKey key_of(std::string_view hex) {
  const Bytes bytes = from_hex(hex);
  return CipherKey(std::span<const std::byte, 32>(bytes.data(), 32));
}

struct Vector {
  std::string_view key, nonce, clear, plain, sealed, tag;
};

// Test cases 13 to 16 of "The Galois/Counter Mode of Operation" (McGrew and Viega, submission to
// NIST), and the first of NIST's CAVS file gcmEncryptExtIV256.rsp that has only bytes in clear.
constexpr Vector kVectors[] = {
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000",
     "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {"0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000",
     "", "00000000000000000000000000000000", "cea7403d4d606b6e074ec5d3baf39d18",
     "d0d1c8a799996bf0265b98b5d48ab919"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
     "b094dac5d93471bdec1a502270e3cc6c"},
    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    {"78dc4e0aaf52d935c3c01eea57428f00ca1fd475f5da86a49c8dd73d68c8e223", "d79cf22d504cc793c3fb6c8a",
     "b96baa8c1c75a671bfb2d08d06be5f36", "", "", "3e5d486aa2e30b22e040b85723a06e76"},
};

constexpr Vector kLongest = kVectors[3];

// A packet that was sealed: what it takes to open it.
struct Sealed {
  Nonce nonce;
  Bytes clear, sealed, tag;

  explicit Sealed(const Vector& vector)
      : nonce(fixed<Nonce>(from_hex(vector.nonce))),
        clear(from_hex(vector.clear)),
        sealed(from_hex(vector.sealed)),
        tag(from_hex(vector.tag)) {}
  bool opens(const auto& cipher) {
    return cipher.open(nonce, clear, sealed, ReceivedTag(tag.data(), kTagBytes));
  }
};

}  // namespace

// By what the processor has for AES, and where it has nothing.
TEMPLATE_TEST_CASE("packets are sealed and opened as NIST's vectors have it", "", PacketCipher,
                   PortableGcm) {
  for (const Vector& vector : kVectors) {
    CAPTURE(vector.tag);
    const TestType cipher(key_of(vector.key));
    const Bytes plain = from_hex(vector.plain);
    Sealed packet(vector);
    Bytes out(plain.size());
    std::array<std::byte, kTagBytes> tag;

    cipher.seal(packet.nonce, packet.clear, plain, out.data(), tag);

    CHECK(out == packet.sealed);
    CHECK(std::ranges::equal(tag, packet.tag));
    CHECK(packet.opens(cipher));
    CHECK(packet.sealed == plain);
  }
}

TEMPLATE_TEST_CASE("a packet is sealed in place as it is elsewhere", "", PacketCipher,
                   PortableGcm) {
  const TestType cipher(key_of(kLongest.key));
  Bytes packet = from_hex(kLongest.plain);
  const Sealed expected(kLongest);
  std::array<std::byte, kTagBytes> tag;

  cipher.seal(expected.nonce, expected.clear, packet, packet.data(), tag);

  CHECK(packet == expected.sealed);
  CHECK(std::ranges::equal(tag, expected.tag));
}

TEST_CASE("a packet in clear has the tag of one with nothing encrypted") {
  const Vector& vector = kVectors[4];
  const PacketCipher cipher(key_of(vector.key));
  const Sealed expected(vector);
  std::array<std::byte, kTagBytes> tag;

  cipher.authenticate(expected.nonce, expected.clear, tag);

  CHECK(std::ranges::equal(tag, expected.tag));
  CHECK(cipher.is_authentic(expected.nonce, expected.clear, tag));
}

TEMPLATE_TEST_CASE("a packet with any bit changed does not open", "", PacketCipher, PortableGcm) {
  const TestType cipher(key_of(kLongest.key));
  const auto opens_with_bit_changed = [&](auto part) {
    const std::size_t bits = 8 * part(*std::make_unique<Sealed>(kLongest)).size();
    for (std::size_t bit = 0; bit < bits; ++bit) {
      Sealed packet(kLongest);
      part(packet)[bit / 8] ^= std::byte{1} << (bit % 8);
      if (packet.opens(cipher)) return true;
    }
    return false;
  };

  CHECK_FALSE(opens_with_bit_changed([](Sealed& packet) { return std::span(packet.nonce); }));
  CHECK_FALSE(opens_with_bit_changed([](Sealed& packet) { return std::span(packet.clear); }));
  CHECK_FALSE(opens_with_bit_changed([](Sealed& packet) { return std::span(packet.sealed); }));
  CHECK_FALSE(opens_with_bit_changed([](Sealed& packet) { return std::span(packet.tag); }));
}

TEMPLATE_TEST_CASE("a packet does not open when it is cut, longer, or under another key", "",
                   PacketCipher, PortableGcm) {
  const TestType cipher(key_of(kLongest.key));
  Sealed cut(kLongest), longer(kLongest), moved(kLongest), other(kLongest);
  cut.sealed.pop_back();
  longer.sealed.push_back({});
  // A byte that was encrypted is taken for one in clear.
  moved.clear.push_back(moved.sealed.front());
  moved.sealed.erase(moved.sealed.begin());

  CHECK_FALSE(cut.opens(cipher));
  CHECK_FALSE(longer.opens(cipher));
  CHECK_FALSE(moved.opens(cipher));
  CHECK_FALSE(other.opens(TestType(key_of(kVectors[4].key))));
}

TEST_CASE("keys are derived as RFC 5869 has it, appendix A.1 to A.3") {
  struct Case {
    std::string_view secret, salt, info, key;
  };
  const Case cases[] = {
      {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
       "f0f1f2f3f4f5f6f7f8f9",
       "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
      {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
       "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
       "404142434445464748494a4b4c4d4e4f",
       "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
       "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
       "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
       "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
       "d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef"
       "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
       "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
       "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
       "cc30c58179ec3e87c14c01d5c1f3434f1d87"},
      {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
       "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.key);
    const Bytes expected = from_hex(one.key);
    KeyDerivation derivation(from_hex(one.salt), from_hex(one.secret));
    Bytes key(expected.size());

    derivation.expand(from_hex(one.info), key);

    CHECK(key == expected);
    derivation.expand(from_hex(one.info), key);
    CHECK(key == expected);  // again the same
  }
}

TEST_CASE("keys of other salts, secrets and names differ") {
  const Bytes secret = from_hex("0b0b0b0b"), other = from_hex("0b0b0b0c"), salt = from_hex("aa");
  const auto key = [](const Bytes& of_salt, const Bytes& of_secret, const Bytes& info) {
    Bytes out(32);
    KeyDerivation(of_salt, of_secret).expand(info, out);
    return out;
  };
  const Bytes one = key(salt, secret, from_hex("01"));

  CHECK(one != key(from_hex("ab"), secret, from_hex("01")));
  CHECK(one != key(salt, other, from_hex("01")));
  CHECK(one != key(salt, secret, from_hex("02")));
  CHECK(one != key(salt, secret, from_hex("0101")));
}

TEST_CASE("a secret is wiped when it is destroyed") {
  alignas(Secret<32>) std::array<std::byte, sizeof(Secret<32>)> place;
  auto* secret = new (place.data()) Secret<32>(key_of(kLongest.key));
  REQUIRE(std::ranges::any_of(place, [](std::byte b) { return b != std::byte{}; }));

  secret->~Secret();

  CHECK(std::ranges::all_of(place, [](std::byte b) { return b == std::byte{}; }));
}

TEST_CASE("secrets are equal if all their bytes are") {
  const Secret<32> one = key_of(kLongest.key);
  for (std::size_t i = 0; i < 32; ++i) {
    Secret<32> other = one;
    CHECK(other == one);
    other.bytes()[i] ^= std::byte{1};
    CHECK_FALSE(other == one);
  }
}

}  // namespace pullman::crypto
