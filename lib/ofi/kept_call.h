// Calls that are carried out later, with lists of their own: an application may use its lists again
// when its call returns; with FI_INJECT the bytes, too.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ofi/calls.h"

namespace pullman::ofi {

class KeptLists {
 public:
  void keep(SendCall& call);
  void keep(ReceiveCall& call) { keep_pieces(call); }
  void keep(MemoryCall& call);
  void keep(AtomicCall& call);

 private:
  template <typename Call>
  void keep_pieces(Call& call);
  template <typename Call>
  void keep_bytes(Call& call);
  void keep_elements(std::span<fi_ioc> lists, std::size_t size);

  std::vector<iovec> pieces_;
  std::vector<fi_ioc> elements_;
  std::vector<std::byte> bytes_;
};

// It can be moved: its lists stay where they are.
template <typename Call>
class Kept {
 public:
  // What would be refused now is not kept: its lists may be anything.
  explicit Kept(const Call& asked) : call_(asked) { lists_.keep(call_); }
  Kept(Kept&&) noexcept = default;
  Kept& operator=(Kept&&) noexcept = default;

  const Call& call() const { return call_; }

 private:
  Call call_;
  KeptLists lists_;
};

}  // namespace pullman::ofi
