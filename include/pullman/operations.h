// What operations beyond a plain send and receive are told and tell: options, registered regions,
// atomics, events. Values only: any thread may have its own. Lengths and offsets are in bytes.
// Ownership: spans and pointers refer to the caller's memory, for as long as the call that takes
// them says. Errors: nothing here throws; the call says what it refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pullman/types.h"

namespace pullman {

// A message matches receives and probes of its own space only. Plain send() and receive() are of
// space 0. The first message or receive of another space takes 32 KiB of memory; a receive throws
// std::bad_alloc if there is none, and nothing happened.
inline constexpr std::uint8_t kSpaces = 32;

// Bytes that lie in several places, in order: gathered when sent, scattered when received.
inline constexpr std::size_t kMaxSegments = 16;
using ConstSegments = std::span<const std::span<const std::byte>>;
using Segments = std::span<const std::span<std::byte>>;

struct SendOptions {
  std::uint8_t space = 0;        // below kSpaces
  bool synchronous = false;      // done only when the receiver has matched it, too
  bool until_delivered = false;  // done only when all of it has arrived: never kOk at once
  bool only_copy = false;        // copied on return, or kBusy and nothing happened
  bool is_own_copy = false;      // nobody waits for it to be done: its ACK need not hurry
  bool priority = false;         // its bytes leave ahead of longer messages' that are under way
  std::optional<std::uint64_t> immediate;  // for the receiver's request, beside the bytes
};

struct ReceiveOptions {
  std::uint8_t space = 0;
};

// Writes bytes [offset, offset + out.size()) of a message into `out`. Called during calls of the
// context, in any order, more than once for the same bytes perhaps; it calls nothing of the
// context, and throws nothing.
struct Packer {
  void (*pack)(void* user, std::uint64_t offset, std::span<std::byte> out) = nullptr;
  void* user = nullptr;
};

// A message that claim() took out of the matching: only receive_claimed() and discard() reach it.
struct Claimed {
  PeerId source;
  std::uint64_t message = 0;
};

// What peers may do with a registered region.
enum class Access : std::uint8_t {
  kNone = 0,
  kRead = 1,   // get(), and atomics that fetch
  kWrite = 2,  // put(), and atomics that change it
  kReadWrite = 3,
};
constexpr bool allows(Access granted, Access needed) {
  return (static_cast<unsigned>(needed) & ~static_cast<unsigned>(granted)) == 0;
}

// A place in a peer's registered region: bytes from its start.
struct RemotePlace {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
};

struct PutOptions {
  // Gives the target an event (Context::take_event()) when all bytes are in place.
  std::optional<std::uint64_t> immediate;
  bool only_copy = false;  // as in SendOptions: the bytes are copied on return, or kBusy
};

// How often peers have used registered memory here: what they were refused does not count.
struct RemoteUse {
  std::uint64_t reads = 0;   // gets, and atomics that fetch
  std::uint64_t writes = 0;  // puts that are in place, and other atomics
};

// A put() with immediate data has been placed here.
struct RemoteEvent {
  PeerId source;
  std::uint64_t immediate = 0;
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// What is done to each element at the target: `there` it is, `operand` comes, `compare` too for
// those that compare.
enum class AtomicOp : std::uint8_t {
  kMin,
  kMax,
  kSum,
  kProduct,
  kLogicalOr,   // 1 if either is not 0, else 0
  kLogicalAnd,  // 1 if both are not 0, else 0
  kBitOr,
  kBitAnd,
  kLogicalXor,  // 1 if exactly one is not 0, else 0
  kBitXor,
  kRead,   // there stays; operands are not used. Fetches only
  kWrite,  // there = operand
  // there = operand if `compare OP there` holds
  kSwapIfEqual,
  kSwapIfNotEqual,
  kSwapIfLessOrEqual,
  kSwapIfLess,
  kSwapIfGreaterOrEqual,
  kSwapIfGreater,
  kMaskedSwap,  // there = (operand & compare) | (there & ~compare)
};

enum class AtomicType : std::uint8_t {
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
  kFloatComplex,
  kDoubleComplex,
  kLongDouble,
  kLongDoubleComplex,
};

[[gnu::visibility("default")]] std::size_t size_of(AtomicType type);
// Whether that may be done to elements of that type: there is no order of complex numbers, and
// there are no bits of floating ones.
[[gnu::visibility("default")]] bool is_defined(AtomicOp op, AtomicType type);
constexpr bool compares(AtomicOp op) {
  return op >= AtomicOp::kSwapIfEqual;
}

// Operands and compares of one atomic(), together.
inline constexpr std::size_t kMaxAtomicBytes = 2048;

// One atomic operation on a vector of elements. Memory is the caller's: what goes out is copied
// before atomic() returns, what comes back is `result`'s until the request is done.
struct Atomic {
  AtomicOp op = AtomicOp::kSum;
  AtomicType type = AtomicType::kUint64;
  std::size_t count = 1;               // of elements
  std::span<const std::byte> operand;  // count elements; empty for kRead
  std::span<const std::byte> compare;  // count elements for those that compare, else empty
  std::span<std::byte> result;         // count elements as they were before; or empty: not fetched
};

// A message that has arrived (at least its first bytes) and waits for a receive.
struct Probe {
  PeerId source;
  Tag tag = 0;
  std::uint64_t length = 0;                // bytes of the whole message
  Claimed claimed;                         // claim(): for receive_claimed() and discard()
  std::optional<std::uint64_t> immediate;  // beside the bytes
};

}  // namespace pullman
