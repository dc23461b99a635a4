// The calls of libfabric that start operations, as values: one form for each kind.
#pragma once

#include <rdma/fabric.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "ofi/atomics.h"
#include "pullman/types.h"

namespace pullman::ofi {

struct Lane;

// Tagged messages match tagged receives only, untagged ones untagged receives.
enum class Space : std::uint8_t {
  kTagged = 0,
  kMessages = 1,
};

struct SendCall {
  Space space = Space::kTagged;
  const iovec* segments = nullptr;
  std::size_t count = 0;
  fi_addr_t to = FI_ADDR_UNSPEC;
  Tag tag = 0;
  std::uint64_t data = 0;  // with FI_REMOTE_CQ_DATA
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_INJECT, FI_COMPLETION, ...
  bool silent = false;      // fi_inject and its like: no completion, whatever is bound
  Lane* lane = nullptr;     // of the handle that the call was made with
};

// Writes to memory of a peer, or reads from it.
struct MemoryCall {
  bool writes = false;
  const iovec* segments = nullptr;
  std::size_t count = 0;
  fi_addr_t at = FI_ADDR_UNSPEC;
  std::uint64_t offset = 0;  // from the region's start
  std::uint64_t key = 0;
  std::uint64_t data = 0;  // with FI_REMOTE_CQ_DATA
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool silent = false;   // fi_inject_write and its like
  Lane* lane = nullptr;  // of the handle that the call was made with
};

// Operates on elements in memory of a peer.
struct AtomicCall {
  AtomicKind kind = AtomicKind::kWrite;
  fi_datatype type = FI_UINT64;
  fi_op op = FI_SUM;
  std::span<const fi_ioc> operands = {};  // counted in elements
  std::span<const fi_ioc> compares = {};
  std::span<const fi_ioc> results = {};
  fi_addr_t at = FI_ADDR_UNSPEC;
  std::uint64_t offset = 0;  // from the region's start
  std::uint64_t key = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool silent = false;   // fi_inject_atomic
  Lane* lane = nullptr;  // of the handle that the call was made with
};

struct ReceiveCall {
  Space space = Space::kTagged;
  const iovec* segments = nullptr;
  std::size_t count = 0;
  fi_addr_t from = FI_ADDR_UNSPEC;
  Tag tag = 0;
  Tag ignore = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;  // FI_PEEK, FI_CLAIM, FI_MULTI_RECV, ...
  Lane* lane = nullptr;     // of the handle that the call was made with
};

// The flags of an operation's completion.
inline std::uint64_t completion_flags(const SendCall& call) {
  return FI_SEND | (call.space == Space::kTagged ? FI_TAGGED : FI_MSG);
}
inline std::uint64_t completion_flags(const ReceiveCall& call) {
  return FI_RECV | (call.space == Space::kTagged ? FI_TAGGED : FI_MSG);
}
inline std::uint64_t completion_flags(const MemoryCall& call) {
  return FI_RMA | (call.writes ? FI_WRITE : FI_READ);
}
inline std::uint64_t completion_flags(const AtomicCall& call) {
  return FI_ATOMIC | (call.kind == AtomicKind::kWrite ? FI_WRITE : FI_READ);
}

}  // namespace pullman::ofi
