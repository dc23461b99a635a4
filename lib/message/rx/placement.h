// Where the bytes of an arriving message go: into memory that is held for it until its turn comes
// and it is matched, then into a receive's buffer or a region.
//
// Works on one message; does not know when its turn comes, nor who pays for the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>

#include "message/rx/in_message.h"
#include "wire/frame.h"

namespace pullman::message {

// Whether there is a place for its next bytes; allocates memory if needed. Returns false if there
// is none: the bytes must count as lost, for bytes noted as arrived are not sent again.
bool has_place(InMessage& message, std::pmr::memory_resource& memory) noexcept;

// Returns where those bytes of it go, if that is one place that holds them all; nothing if
// place_bytes() must put them there. Needs has_place().
std::span<std::byte> place_of(const InMessage& message, std::uint64_t offset, std::size_t length);

// Puts bytes of it, lead included, where they go, as far as there is room. Bytes that are there
// already, since place_of() was told, stay. Needs has_place().
void place_bytes(InMessage& message, std::uint64_t offset, std::span<const std::byte> data);

// From now on the bytes behind the lead go to `bytes`, or to the receive's segments if that is null
// and there is room. Moves the held bytes there.
void redirect(InMessage& message, std::byte* bytes, std::size_t room,
              std::pmr::memory_resource& memory);

// Frees the held bytes of a message that is being dropped.
void release_place(InMessage& message, std::pmr::memory_resource& memory);

// A place for the bytes that follow a chunk just taken. There is one if they need no further
// checks: the message has a receive, and exactly the bytes before them have arrived.
class BytesInOrder {
 public:
  BytesInOrder() = default;
  BytesInOrder(std::uint64_t most, std::span<std::byte> buffer) : most_(most), buffer_(buffer) {}

  std::uint64_t most() const { return most_; }    // bytes that are still wanted
  std::uint64_t taken() const { return taken_; }  // bytes that were put

  // Puts the next bytes, at most most(), into the receive's buffer, cut to its size.
  void put(std::span<const std::byte> data);

 private:
  std::uint64_t most_ = 0;
  std::uint64_t taken_ = 0;
  std::span<std::byte> buffer_;  // the part still unwritten
};
// Returns the place for the bytes behind that chunk of the message.
BytesInOrder bytes_behind(const InMessage& message, const wire::Frame& chunk);

}  // namespace pullman::message
