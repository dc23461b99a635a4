// Values of launchers that take text only (PMI): hexadecimal digits. They are wiped, since a key
// may be among them.
#pragma once

#include <algorithm>
#include <array>
#include <boost/algorithm/hex.hpp>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "crypto/secret.h"
#include "launch/launcher.h"

namespace pullman::launch {

class HexValue {
 public:
  HexValue() = default;
  HexValue(const HexValue&) = delete;
  HexValue& operator=(const HexValue&) = delete;
  ~HexValue() { crypto::wipe(std::as_writable_bytes(std::span(text_))); }

  // Returns false if the value is too long.
  bool write(std::span<const std::byte> value) {
    if (value.size() > Launcher::kMaxValueBytes) return false;
    const auto* const first = reinterpret_cast<const unsigned char*>(value.data());
    *boost::algorithm::hex(first, first + value.size(), text_.begin()) = '\0';
    return true;
  }
  // Returns the length of the value that the text stands for, which `out` then begins with; nothing
  // if it stands for none, or for a longer one.
  std::optional<std::size_t> read(std::span<std::byte> out) const {
    const std::string_view digits(text_.data(), strnlen(text_.data(), text_.size()));
    if (digits.size() % 2 != 0 || digits.size() / 2 > out.size()) return std::nullopt;
    try {
      boost::algorithm::unhex(digits, reinterpret_cast<unsigned char*>(out.data()));
    } catch (const boost::algorithm::hex_decode_error&) {
      return std::nullopt;
    }
    return digits.size() / 2;
  }

  // The text, which ends with a zero.
  std::span<char> text() { return text_; }
  const char* c_str() const { return text_.data(); }

 private:
  std::array<char, 2 * Launcher::kMaxValueBytes + 1> text_{};
};

}  // namespace pullman::launch
