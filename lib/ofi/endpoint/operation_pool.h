// The operations of an endpoint. They are reused, and keep their addresses until the pool is
// destroyed.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ofi/endpoint/operation.h"

namespace pullman::ofi {

class OperationPool {
 public:
  OperationPool(OutstandingOperations& owner, std::size_t max) : owner_(owner), max_(max) {}

  // Returns null if too many are outstanding.
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

  // Returns the first outstanding operation for which `matches` is true, or null. Checks all, so it
  // is for rare calls.
  template <typename Matches>
  Operation* find(Matches&& matches) const {
    for (const auto& slab : slabs_) {
      for (std::size_t i = 0; i < kSlab; ++i) {
        if (slab[i].busy && matches(slab[i])) return &slab[i];
      }
    }
    return nullptr;
  }

  // Visits all outstanding operations; they may complete meanwhile.
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
    if (slabs_.size() * kSlab >= max_) return;
    slabs_.push_back(std::make_unique<Operation[]>(kSlab));
    for (std::size_t i = kSlab; i > 0; --i) {
      Operation& operation = slabs_.back()[i - 1];
      operation.owner = &owner_;
      operation.request.user = &operation;
      give_back(operation);
    }
  }

  OutstandingOperations& owner_;
  const std::size_t max_;
  std::vector<std::unique_ptr<Operation[]>> slabs_;
  Operation* free_ = nullptr;
};

}  // namespace pullman::ofi
