// Where the bytes of a message go that has begun to arrive: into memory that is held for it until
// its turn comes and it is matched, from then on into a receive's buffer or a region.
//
// Works on one message; does not know when its turn is, nor who pays for the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "message/rx/in_message.h"
#include "wire/frame.h"

namespace pullman::message {

// Whether there is a place for its next bytes: memory is taken if need be. False: there is none, so
// the bytes count as lost. Noted as arrived they would not come again.
bool has_place(InMessage& message, std::pmr::memory_resource& memory) noexcept;

// Puts bytes of it, lead included, where they go, cut to the room there. There is a place.
void place_bytes(InMessage& message, std::uint64_t offset, std::span<const std::byte> data);

// From now on the bytes behind the lead go to `bytes`, or to the receive's several places if that
// is null and there is room; what was held does now.
void redirect(InMessage& message, std::byte* bytes, std::size_t room,
              std::pmr::memory_resource& memory);

// Of one that is being dropped.
void release_place(InMessage& message, std::pmr::memory_resource& memory);

// The bytes that follow a chunk just taken, if they can be taken without a question: its message
// has a receive, and of it exactly what is before them has arrived.
class BytesInOrder {
 public:
  BytesInOrder() = default;
  BytesInOrder(std::uint64_t most, std::span<std::byte> buffer) : most_(most), buffer_(buffer) {}

  std::uint64_t most() const { return most_; }    // so many are wanted still
  std::uint64_t taken() const { return taken_; }  // so many were put

  // Puts the next of them, most() at most, into the receive's buffer, cut to its size.
  void put(std::span<const std::byte> data);

 private:
  std::uint64_t most_ = 0;
  std::uint64_t taken_ = 0;
  std::span<std::byte> buffer_;  // what is left of it
};
// Those behind a chunk of that message.
BytesInOrder bytes_behind(const InMessage& message, const wire::Frame& chunk);

}  // namespace pullman::message
