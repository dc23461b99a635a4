// Arguments and results of operations beyond a plain send and receive: options, registered regions,
// atomics, events. All are values, so any thread may have its own. Lengths and offsets are in
// bytes. Ownership: spans and pointers refer to the caller's memory; the call that takes them says
// for how long. Errors: nothing here throws; each call documents the arguments it refuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "pullman/types.h"

namespace pullman {

// The number of spaces. The last is a World's (world.h), the one before it the relay's
// (Config::relay), where these are used. A message matches receives and probes of its own space
// only. Plain send() and receive() use space 0. The first message or receive of another space takes
// 32 KiB of memory; a receive throws std::bad_alloc, without any effect, if there is none.
inline constexpr std::uint8_t kSpaces = 32;

// The largest number of segments of one operation.
inline constexpr std::size_t kMaxSegments = 16;
// Bytes in several places, in order, gathered when sent.
using ConstSegments = std::span<const std::span<const std::byte>>;
// The same, scattered when received.
using Segments = std::span<const std::span<std::byte>>;

// How a message is sent.
struct SendOptions {
  std::uint8_t space = 0;        // below kSpaces
  bool synchronous = false;      // done only when the receiver has matched it, too
  bool until_delivered = false;  // done only when all of it has arrived: never kOk at once
  bool only_copy = false;        // copied on return, or kBusy without any effect
  bool is_own_copy = false;      // the program does not wait for it: no ACK is asked for early
  bool priority = false;         // leaves ahead of longer messages that are already being sent
  std::optional<std::uint64_t> immediate;  // immediate data: goes to the receiver's request
};

// How a message is received.
struct ReceiveOptions {
  std::uint8_t space = 0;  // below kSpaces
};

// Writes bytes [offset, offset + out.size()) of a message into `out`. The library calls it during
// calls of the context, in any order, perhaps more than once for the same bytes. It must not call
// the context, nor throw.
struct Packer {
  // Writes them; it is given the pointer below.
  void (*pack)(void* user, std::uint64_t offset, std::span<std::byte> out) = nullptr;
  void* user = nullptr;  // what `pack` is called with
};

// Names a message that claim() took out of the matching, for receive_claimed() and discard().
struct Claimed {
  PeerId source;              // who sent it
  std::uint64_t message = 0;  // the library's name for it
};

// What peers may do with a registered region.
enum class Access : std::uint8_t {
  kNone = 0,       // nothing
  kRead = 1,       // get(), and atomics that fetch
  kWrite = 2,      // put(), and atomics that change it
  kReadWrite = 3,  // both
};
// Returns whether `granted` has all that `needed` has.
constexpr bool allows(Access granted, Access needed) {
  return (static_cast<unsigned>(needed) & ~static_cast<unsigned>(granted)) == 0;
}

// A place in a peer's registered region: bytes from its start.
struct RemotePlace {
  std::uint64_t key = 0;     // of the region
  std::uint64_t offset = 0;  // of the first byte
};

// How bytes are put.
struct PutOptions {
  // Immediate data: the target gets an event (Context::take_event()) when all bytes are in place.
  std::optional<std::uint64_t> immediate;
  bool only_copy = false;  // as in SendOptions
};

// How often peers have used registered memory here. Operations that were refused do not count.
struct RemoteUse {
  std::uint64_t reads = 0;   // gets, and atomics that fetch
  std::uint64_t writes = 0;  // completed puts, and other atomics
};

// Reports that a put() with immediate data is in place here.
struct RemoteEvent {
  PeerId source;                // who put it
  std::uint64_t immediate = 0;  // the immediate data
  std::uint64_t key = 0;        // of the region
  std::uint64_t offset = 0;     // of the first byte
  std::uint64_t length = 0;     // bytes that were put
};

// The operation on each element at the target. `there` is the element; `operand`, and `compare` for
// operations that compare, come with the request.
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
  kRead,   // there is unchanged and only fetched; operands are not used
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

// What an element is.
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

// Returns the bytes of one element.
[[gnu::visibility("default")]] std::size_t size_of(AtomicType type);
// Returns whether the operation is defined for the type: complex numbers have no order, and
// floating-point numbers no bitwise operations.
[[gnu::visibility("default")]] bool is_defined(AtomicOp op, AtomicType type);
// Returns whether the operation needs Atomic::compare.
constexpr bool compares(AtomicOp op) {
  return op >= AtomicOp::kSwapIfEqual;
}

// The largest size of `operand` and `compare` of one atomic(), together.
inline constexpr std::size_t kMaxAtomicBytes = 2048;

// One atomic operation on a vector of elements. The caller owns the memory: `operand` and `compare`
// are copied before atomic() returns, `result` stays in use until the request is done.
struct Atomic {
  AtomicOp op = AtomicOp::kSum;           // what is done
  AtomicType type = AtomicType::kUint64;  // to what
  std::size_t count = 1;                  // of elements
  std::span<const std::byte> operand;     // count elements; empty for kRead
  std::span<const std::byte> compare;     // count elements for operations that compare, else empty
  std::span<std::byte> result;            // count elements as they were before; empty: not fetched
};

// An unexpected message, of which at least the first bytes have arrived.
struct Probe {
  PeerId source;                           // who sent it
  Tag tag = 0;                             // with which tag
  std::uint64_t length = 0;                // bytes of the whole message
  Claimed claimed;                         // from claim(): for receive_claimed() and discard()
  std::optional<std::uint64_t> immediate;  // the immediate data, if any
};

}  // namespace pullman
