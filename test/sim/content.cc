#include "sim/content.h"

#include <cstring>

namespace pullman::sim {
namespace {

constexpr std::uint32_t kMagic = 0x50756C6C;

// Returns word `i` (of 64 bits) of a message.
std::uint64_t word_at(const MessageName& name, std::size_t i) {
  const std::uint64_t whole = std::uint64_t{name.conversation} << 32 | name.index;
  if (i == 0) return whole;
  if (i == 1) return std::uint64_t{kMagic} << 32 | (whole % 0xFFFFFFFB);
  const std::uint64_t mixed = (whole + i) * 0x9E3779B97F4A7C15u;
  return mixed ^ (mixed >> 29);
}

}  // namespace

Tag named_tag(const MessageName& name, Tag label) {
  return kNamedTag | Tag{name.conversation & 0x7FFFF} << 44 | Tag{name.index & 0xFFFFFFF} << 16 |
         label;
}

void fill(std::span<std::byte> out, const MessageName& name) {
  std::size_t at = 0;
  for (std::size_t i = 0; at < out.size(); ++i, at += 8) {
    const std::uint64_t word = word_at(name, i);
    std::memcpy(out.data() + at, &word, out.size() - at < 8 ? out.size() - at : 8);
  }
}

std::optional<MessageName> name_of(Tag tag, std::span<const std::byte> received) {
  if ((tag & kNamedTag) != 0) {
    return MessageName{static_cast<std::uint32_t>(tag >> 44 & 0x7FFFF),
                       static_cast<std::uint32_t>(tag >> 16 & 0xFFFFFFF)};
  }
  if (received.size() < kNameBytes) return std::nullopt;
  std::uint64_t words[2];
  std::memcpy(words, received.data(), sizeof(words));
  const MessageName name{static_cast<std::uint32_t>(words[0] >> 32),
                         static_cast<std::uint32_t>(words[0])};
  return words[1] == word_at(name, 1) ? std::optional(name) : std::nullopt;
}

std::size_t first_difference(std::span<const std::byte> received, const MessageName& name) {
  std::size_t at = 0;
  for (std::size_t i = 0; at < received.size(); ++i, at += 8) {
    const std::uint64_t word = word_at(name, i);
    const std::size_t length = received.size() - at < 8 ? received.size() - at : 8;
    if (std::memcmp(received.data() + at, &word, length) == 0) continue;
    const auto* expected = reinterpret_cast<const std::byte*>(&word);
    while (received[at] == expected[at & 7]) ++at;
    return at;
  }
  return received.size();
}

}  // namespace pullman::sim
