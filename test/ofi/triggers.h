// The base of tests of triggered operations and deferred work.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "pair.h"

namespace pullman::test {

inline constexpr std::uint64_t kTriggerCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_TRIGGER;

inline constexpr std::uint64_t kLentKey = 7;

inline Owned<fid_cntr> counter_of(const Side& side) {
  fi_cntr_attr attributes{};
  fid_cntr* counter = nullptr;
  MUST(fi_cntr_open(side.domain.get(), &attributes, &counter, nullptr));
  return Owned<fid_cntr>(counter);
}

inline fi_triggered_context when(const Owned<fid_cntr>& counter, std::size_t threshold) {
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {counter.get(), threshold};
  return context;
}

// A message of one segment; `context` may be null.
struct Message {
  Message(void* bytes, std::size_t length, fi_addr_t peer, std::uint64_t tag, void* context)
      : piece{bytes, length} {
    asked.msg_iov = &piece;
    asked.iov_count = 1;
    asked.addr = peer;
    asked.tag = tag;
    asked.context = context;
  }

  iovec piece;
  fi_msg_tagged asked{};
};

// A write or read of one segment, at an offset in a peer's region.
struct Access {
  Access(void* bytes, std::size_t length, fi_addr_t peer, std::uint64_t offset, void* context)
      : piece{bytes, length}, place{offset, length, kLentKey} {
    asked.msg_iov = &piece;
    asked.iov_count = 1;
    asked.addr = peer;
    asked.rma_iov = &place;
    asked.rma_iov_count = 1;
    asked.context = context;
  }

  iovec piece;
  fi_rma_iov place;
  fi_msg_rma asked{};
};

// An atomic on the first elements of that memory.
struct AtomicAccess {
  AtomicAccess(fi_datatype type, fi_op op, std::span<const fi_ioc> operands, fi_addr_t peer,
               void* context) {
    asked.msg_iov = operands.data();
    asked.iov_count = operands.size();
    asked.addr = peer;
    asked.rma_iov = &place;
    asked.rma_iov_count = 1;
    asked.datatype = type;
    asked.op = op;
    asked.context = context;
    for (const fi_ioc& one : operands) place.count += one.count;
  }

  fi_rma_ioc place{0, 0, kLentKey};
  fi_msg_atomic asked{};
};

inline bool silent(Side& side) {
  Said said;
  return !side.look(said);
}

// Tags of the next messages that b receives, each into its own buffer.
inline std::vector<std::uint64_t> tags_at_b(Pair& pair, std::size_t count) {
  std::vector<std::uint64_t> tags;
  for (std::size_t i = 0; i < count; ++i) {
    char byte = 0;
    MUST(fi_trecv(pair.b->endpoint.get(), &byte, 1, nullptr, pair.to_a, 0, ~0ULL, nullptr));
    tags.push_back(pair.next(*pair.b).entry.tag);
  }
  return tags;
}

// Memory of b that a can access.
struct Lent {
  explicit Lent(Pair& pair, std::size_t size)
      : bytes(size),
        region(lend(pair.b->domain.get(), std::as_writable_bytes(std::span(bytes)), kLentKey)) {}

  std::vector<char> bytes;
  Owned<fid_mr> region;
};

}  // namespace pullman::test
