// What is to be sent, beyond a plain message: its kind, its lead, and where its bytes come from.
//
// Bytes of a message are counted with the lead, as on the wire; the caller's follow it. Knows how
// to find and copy them. Does not know ids or packets.
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
  ConstSegments pieces;  // of the caller's bytes; not with a packer
  const Packer* packer = nullptr;
  std::uint64_t size = 0;      // of the caller's bytes, all pieces together
  bool wants_result = false;   // done when the receiver's RESULT has come
  bool wants_arrival = false;  // done when all of it has arrived
  bool is_own_copy = false;    // of the bytes: nobody waits for it
  bool has_priority = false;
  bool only_copy = false;
  Operation* asker = nullptr;  // learns the message's id
  bool is_solicited = false;   // the receiver asked for it: costs no allowance, waits for no other

  std::uint64_t total() const { return lead_bytes + size; }
};

inline std::uint64_t size_of_all(ConstSegments pieces) {
  std::uint64_t size = 0;
  for (const auto& piece : pieces) size += piece.size();
  return size;
}

// Memory to note so many pieces in, if there is none. Before anything of the operation begins: what
// follows takes none.
void make_room(Operation& op, std::size_t pieces);

// Notes it in an operation that begins and has room. Pieces are copied, the bytes are not.
void describe(Operation& op, const SendDescriptor& descriptor);

// Bytes [at, at + out.size()) of the operation's message.
void copy_out(const Operation& op, std::uint64_t at, std::span<std::byte> out);

// The longest range of the operation's message from `at` on that lies in one place of the caller's.
std::span<const std::byte> one_place(const Operation& op, std::uint64_t at);

// Notes where a receive's bytes go. It has room.
void describe_sink(Operation& op, Segments pieces);
// Writes to bytes [at, at + data.size()) of the caller's, as far as there is room.
void scatter(const Operation& op, std::uint64_t at, std::span<const std::byte> data);
// What of them lies in one place, from `at` on.
std::span<std::byte> one_place_of_sink(const Operation& op, std::uint64_t at);

}  // namespace pullman::message
