// One operation under way, and the pool they come from.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "ofi/limits.h"
#include "pullman/operations.h"
#include "pullman/request.h"

namespace pullman::ofi {

class Counter;
class CompletionQueue;
class Endpoint;
struct Lane;
struct MultiReceiveBuffer;

// What an atomic fetches into several places: together at first.
struct ScatteredResult {
  void scatter() const;

  std::array<std::byte, kMaxAtomicBytes> bytes;
  std::array<iovec, kMaxSegments> segments;
  std::size_t count = 0;
};

struct Operation {
  Request request;  // its `user` is this
  Endpoint* endpoint = nullptr;
  Lane* lane = nullptr;              // which it is of
  CompletionQueue* queue = nullptr;  // for its completion; null: it has none
  bool reports_success = true;       // success is a completion; an error always is
  Counter* counter = nullptr;
  void* context = nullptr;               // the application's
  std::uint64_t flags = 0;               // of its completion: FI_SEND, FI_RECV, FI_TAGGED, ...
  MultiReceiveBuffer* shared = nullptr;  // receive: into a multi-receive buffer
  void* taken = nullptr;                 // and where in it the message is
  std::unique_ptr<std::byte[]> copy;     // what an inject sends that had to wait
  bool is_own_copy = false;              // the bytes are in `copy`
  std::byte* bounce = nullptr;           // what is sent instead of the application's bytes
  std::unique_ptr<ScatteredResult> scattered;
  bool scatters = false;      // its result goes there first
  Operation* next = nullptr;  // in the pool
  bool busy = false;          // not in the pool

  // The place for an inject's bytes; null: there is no memory.
  std::byte* make_copy() {
    if (copy == nullptr) copy.reset(new (std::nothrow) std::byte[kInjectBytes]);
    return copy.get();
  }
};

// Operations stay where they are until the pool goes; those given back are used again.
class OperationPool {
 public:
  OperationPool(Endpoint& owner, std::size_t most) : owner_(owner), most_(most) {}

  // Null: too many are under way.
  Operation* take() {
    if (free_ == nullptr) [[unlikely]]
      grow();
    Operation* operation = free_;
    if (operation == nullptr) [[unlikely]]
      return nullptr;
    free_ = operation->next;
    operation->busy = true;
    return operation;
  }

  void give_back(Operation& operation) {
    operation.busy = false;
    operation.next = free_;
    free_ = &operation;
  }

  // The first under way of which `matches` is true, or null. Looks at all: for what is rare.
  template <typename Matches>
  Operation* find(Matches&& matches) {
    for (const auto& slab : slabs_) {
      for (std::size_t i = 0; i < kSlab; ++i) {
        if (slab[i].busy && matches(slab[i])) return &slab[i];
      }
    }
    return nullptr;
  }

  // All that are under way; they may end meanwhile.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (const auto& slab : slabs_) {
      for (std::size_t i = 0; i < kSlab; ++i) {
        if (slab[i].busy) visit(slab[i]);
      }
    }
  }

 private:
  static constexpr std::size_t kSlab = 64;

  void grow() {
    if (slabs_.size() * kSlab >= most_) return;
    slabs_.push_back(std::make_unique<Operation[]>(kSlab));
    for (std::size_t i = kSlab; i > 0; --i) {
      Operation& operation = slabs_.back()[i - 1];
      operation.endpoint = &owner_;
      operation.request.user = &operation;
      give_back(operation);
    }
  }

  Endpoint& owner_;
  const std::size_t most_;
  std::vector<std::unique_ptr<Operation[]>> slabs_;
  Operation* free_ = nullptr;
};

}  // namespace pullman::ofi
