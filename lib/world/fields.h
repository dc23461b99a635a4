// Fields one after the other: numbers, and texts with their lengths, as the messages of the side
// channel and the report are made of. A reader goes on behind the end, with nothing, and says so.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/bytes.h"
#include "world/bytes.h"

namespace pullman::world {

class FieldWriter {
 public:
  void byte(std::uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void number(std::uint32_t value) { wire::store32(more(sizeof value), value); }
  void long_number(std::uint64_t value) { wire::store64(more(sizeof value), value); }
  // At most `limit` letters of it, which is at most 255.
  void text(std::string_view value, std::size_t limit) {
    const std::string_view kept = value.substr(0, limit);
    byte(static_cast<std::uint8_t>(kept.size()));
    bytes(std::as_bytes(std::span(kept)));
  }
  void bytes(std::span<const std::byte> value) {
    out_.insert(out_.end(), value.begin(), value.end());
  }
  Bytes take() { return std::move(out_); }

 private:
  std::byte* more(std::size_t count) {
    out_.resize(out_.size() + count);
    return out_.data() + out_.size() - count;
  }

  Bytes out_;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> in) : in_(in) {}

  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? 0 : wire::load8(taken.data());
  }
  std::uint32_t number() {
    const auto taken = take(sizeof(std::uint32_t));
    return taken.empty() ? 0 : wire::load32(taken.data());
  }
  std::uint64_t long_number() {
    const auto taken = take(sizeof(std::uint64_t));
    return taken.empty() ? 0 : wire::load64(taken.data());
  }
  // One that is longer than `limit` is an error.
  std::string text(std::size_t limit) {
    const std::size_t length = byte();
    if (length > limit) fail();
    const auto taken = take(length);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  // Returns that many bytes, or none if they are not there.
  std::span<const std::byte> take(std::size_t count) {
    if (failed_ || count > in_.size()) {
      fail();
      return {};
    }
    const auto taken = in_.first(count);
    in_ = in_.subspan(count);
    return taken;
  }
  std::span<const std::byte> rest() { return take(in_.size()); }

  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  // Returns whether all was read, and nothing else.
  bool is_at_end() const { return !failed_ && in_.empty(); }

 private:
  std::span<const std::byte> in_;
  bool failed_ = false;
};

}  // namespace pullman::world
