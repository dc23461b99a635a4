// The contents of messages: bytes that follow from the message's name, so that any mix-up shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pullman/types.h"

namespace pullman::sim {

// Names a message in a whole run: its conversation (one sender's messages through one PeerId) and
// its place in it.
struct MessageName {
  std::uint32_t conversation = 0;
  std::uint32_t index = 0;
  bool operator==(const MessageName&) const = default;
};

// Messages shorter than this have no room for their name and carry it in the tag.
inline constexpr std::size_t kNameBytes = 16;

// Tags: the low 16 bits are a label that programs choose. A named tag has the top bit set and the
// message's name above the label; others are just a label, the same for many messages.
inline constexpr Tag kLabelBits = 0xFFFF;
inline constexpr Tag kNamedTag = Tag{1} << 63;
Tag named_tag(const MessageName& name, Tag label);

void fill(std::span<std::byte> out, const MessageName& name);

// Returns the message's name from its tag or else its first bytes; nothing if neither holds one.
std::optional<MessageName> name_of(Tag tag, std::span<const std::byte> received);

// Returns the index of the first byte that fill() made otherwise; `received.size()` if none.
std::size_t first_difference(std::span<const std::byte> received, const MessageName& name);

}  // namespace pullman::sim
