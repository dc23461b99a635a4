// Describes a send that is more than a plain message: its kind, its lead, and where its bytes are.
//
// Offsets in a message count the lead, as on the wire; the caller's bytes follow it. Knows how to
// find and copy the bytes. Does not know ids or packets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "message/operation.h"
#include "pullman/operations.h"
#include "wire/kind.h"

namespace pullman::message {

struct SendDescriptor {
  std::uint8_t kind = 0;
  Tag tag = 0;
  wire::Lead lead{};
  std::uint8_t lead_bytes = 0;
  ConstSegments segments;  // of the caller's bytes; empty with a packer
  const Packer* packer = nullptr;
  std::uint64_t size = 0;      // of the caller's bytes, all segments together
  bool wants_result = false;   // done when the receiver's RESULT has come
  bool wants_arrival = false;  // done when all of it has arrived
  bool is_own_copy = false;    // the bytes are the library's copy: no caller waits
  bool has_priority = false;
  bool only_copy = false;
  Operation* asker = nullptr;  // the get or atomic to tell the message's id
  bool is_solicited = false;   // the receiver asked for it: costs no allowance, waits for no other

  std::uint64_t total() const { return lead_bytes + size; }
};

inline std::uint64_t size_of_all(ConstSegments segments) {
  std::uint64_t size = 0;
  for (const auto& segment : segments) size += segment.size();
  return size;
}

// Takes memory to note `segments` segments in, unless the operation has it. Call it before the
// operation begins: what follows takes no memory.
void make_room(Operation& op, std::size_t segments);

// Notes the descriptor in an operation that begins and has room. Copies the list of segments, not
// the bytes.
void describe(Operation& op, const SendDescriptor& descriptor);

// Copies bytes [at, at + out.size()) of the operation's message.
void copy_out(const Operation& op, std::uint64_t at, std::span<std::byte> out);

// Returns the longest range of the operation's message from `at` on that is contiguous in memory.
std::span<const std::byte> one_place(const Operation& op, std::uint64_t at);

// Notes the segments that a receive writes to. The operation has room.
void describe_sink(Operation& op, Segments segments);
// Writes to bytes [at, at + data.size()) of the receive's buffer, as far as there is room.
void scatter(const Operation& op, std::uint64_t at, std::span<const std::byte> data);
// Returns the contiguous part of the receive's buffer from `at` on.
std::span<std::byte> one_place_of_sink(const Operation& op, std::uint64_t at);

}  // namespace pullman::message
