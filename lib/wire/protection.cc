#include "wire/protection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/bytes.h"

namespace pullman::wire {
namespace {

constexpr std::size_t kLabelBytes = 16;
constexpr char kConnectionLabel[kLabelBytes + 1] = "pullman 1 packet";
constexpr char kInitialLabel[kLabelBytes + 1] = "pullman 1 hello ";

// Writes big-endian numbers one behind the other.
struct Writer {
  std::byte* at;

  void label(const char* text) {
    std::memcpy(at, text, kLabelBytes);
    at += kLabelBytes;
  }
  void number8(std::uint8_t value) { store8(std::exchange(at, at + 1), value); }
  void number32(std::uint32_t value) { store32(std::exchange(at, at + 4), value); }
  void number64(std::uint64_t value) { store64(std::exchange(at, at + 8), value); }
  void end(const End& end) {
    number64(end.epoch);
    number32(end.id.index);
    number32(end.id.proof);
    number64(end.first_number);
  }
};

}  // namespace

std::byte* put_number(std::byte* out, std::uint64_t number) {
  store64(out, number);
  return out + sizeof number;
}

std::uint64_t take_number(const std::byte* in) {
  return load64(in);
}

Nonce nonce_of(bool control, std::uint64_t number) {
  Nonce nonce;
  Writer out{nonce.data()};
  out.number32(control ? 1 : 0);
  out.number64(number);
  return nonce;
}

ConnectionInfo info_of(const End& from, const End& to, const KeyName& name) {
  ConnectionInfo info;
  Writer out{info.data()};
  out.label(kConnectionLabel);
  out.number8(static_cast<std::uint8_t>(name.protection));
  out.end(from);
  out.end(to);
  out.number8(name.rail);
  out.number64(name.phase);
  return info;
}

InitialInfo info_of(std::span<const std::byte, kSaltBytes> salt, Protection protection) {
  InitialInfo info;
  Writer out{info.data()};
  out.label(kInitialLabel);
  out.number8(static_cast<std::uint8_t>(protection));
  std::copy(salt.begin(), salt.end(), out.at);
  return info;
}

}  // namespace pullman::wire
