// What messages are made of: bytes that follow from who sent them, so that any mix-up shows.
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

// Who sent it, from the tag or else from the first bytes; nothing if neither says.
std::optional<MessageName> name_of(Tag tag, std::span<const std::byte> received);

// The first byte that is not as fill() made it; `received.size()` if all are right.
std::size_t first_difference(std::span<const std::byte> received, const MessageName& name);

}  // namespace pullman::sim
