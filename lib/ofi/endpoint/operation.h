// One outstanding operation.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "ofi/limits.h"
#include "pullman/operations.h"
#include "pullman/request.h"

namespace pullman::ofi {

class Counter;
class CompletionQueue;
class OutstandingOperations;
struct Lane;
struct MultiReceiveBuffer;

// The result of an atomic that goes to several segments: it is written here first.
struct ScatteredResult {
  void scatter() const;

  std::array<std::byte, kMaxAtomicBytes> bytes;
  std::array<iovec, kMaxSegments> segments;
  std::size_t count = 0;
};

struct Operation {
  Request request;  // its `user` is this
  OutstandingOperations* owner = nullptr;
  Lane* lane = nullptr;              // of the call
  CompletionQueue* queue = nullptr;  // for its completion; null: it writes none
  bool reports_success = true;       // success writes a completion; an error always does
  Counter* counter = nullptr;
  void* context = nullptr;  // the application's
  std::uint64_t flags = 0;  // of its completion: FI_SEND, FI_RECV, FI_TAGGED, ...
  MultiReceiveBuffer* multi_receive = nullptr;  // a receive into a multi-receive buffer
  void* taken = nullptr;                        // where the message is in that buffer
  std::unique_ptr<std::byte[]> copy;            // bytes of an inject that waits
  bool is_own_copy = false;                     // the bytes to send are in `copy`
  std::byte* bounce = nullptr;                  // sent instead of the application's bytes
  std::unique_ptr<ScatteredResult> scattered;
  bool scatters = false;      // its result is written to `scattered` first
  Operation* next = nullptr;  // free list of the pool
  bool busy = false;          // taken from the pool

  // Returns room for the bytes of an inject, or null if there is no memory.
  std::byte* make_copy() {
    if (copy == nullptr) copy.reset(new (std::nothrow) std::byte[kInjectBytes]);
    return copy.get();
  }
};

}  // namespace pullman::ofi
