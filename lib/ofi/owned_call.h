// Calls that are executed later, with copies of their segment lists: when its call returns an
// application may reuse the lists and, with FI_INJECT, the bytes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ofi/calls.h"

namespace pullman::ofi {

class OwnedLists {
 public:
  void copy(SendCall& call);
  void copy(ReceiveCall& call) { copy_segments(call); }
  void copy(MemoryCall& call);
  void copy(AtomicCall& call);

 private:
  template <typename Call>
  void copy_segments(Call& call);
  template <typename Call>
  void copy_bytes(Call& call);
  void copy_elements(std::span<fi_ioc> lists, std::size_t size);

  std::vector<iovec> segments_;
  std::vector<fi_ioc> elements_;
  std::vector<std::byte> bytes_;
};

// A call with its lists. Can be moved: the lists stay in place.
template <typename Call>
class OwnedCall {
 public:
  // The call must have been checked: lists of an invalid call may be anything.
  explicit OwnedCall(const Call& asked) : call_(asked) { lists_.copy(call_); }
  OwnedCall(OwnedCall&&) noexcept = default;
  OwnedCall& operator=(OwnedCall&&) noexcept = default;

  const Call& call() const { return call_; }

 private:
  Call call_;
  OwnedLists lists_;
};

}  // namespace pullman::ofi
