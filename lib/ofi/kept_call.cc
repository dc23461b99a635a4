#include "ofi/kept_call.h"

#include <array>
#include <cstring>

#include "pullman/operations.h"

namespace pullman::ofi {

template <typename Call>
void KeptLists::keep_pieces(Call& call) {
  pieces_.assign(call.pieces, call.pieces + call.count);
  call.pieces = pieces_.data();
}
template void KeptLists::keep_pieces(ReceiveCall& call);

template <typename Call>
void KeptLists::keep_bytes(Call& call) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) length += call.pieces[i].iov_len;
  bytes_.resize(length);
  std::byte* out = bytes_.data();
  for (std::size_t i = 0; i < call.count; ++i) {
    const iovec& piece = call.pieces[i];
    if (piece.iov_len != 0) std::memcpy(out, piece.iov_base, piece.iov_len);
    out += piece.iov_len;
  }
  pieces_ = {{bytes_.data(), length}};
  call.pieces = pieces_.data();
  call.count = 1;
}

void KeptLists::keep(SendCall& call) {
  (call.flags & FI_INJECT) != 0 ? keep_bytes(call) : keep_pieces(call);
}

void KeptLists::keep(MemoryCall& call) {
  call.writes && (call.flags & FI_INJECT) != 0 ? keep_bytes(call) : keep_pieces(call);
}

// Three lists, one behind the other. What an atomic read is given as operands does not count.
void KeptLists::keep(AtomicCall& call) {
  if (call.op == FI_ATOMIC_READ) call.operands = {};
  const std::array lists = {&call.operands, &call.compares, &call.results};
  for (const auto* list : lists) elements_.insert(elements_.end(), list->begin(), list->end());
  const fi_ioc* at = elements_.data();
  for (auto* list : lists) {
    *list = {at, list->size()};
    at += list->size();
  }
  const auto kind = find_atomic(call.kind, call.type, call.op);
  if ((call.flags & FI_INJECT) == 0 || !kind) return;
  const std::size_t inputs = call.operands.size() + call.compares.size();
  keep_elements(std::span(elements_).first(inputs), size_of(kind->type));
}

// What they hold, in a place of ours.
void KeptLists::keep_elements(std::span<fi_ioc> lists, std::size_t size) {
  std::size_t length = 0;
  for (const fi_ioc& piece : lists) length += piece.count * size;
  bytes_.resize(length);
  std::byte* out = bytes_.data();
  for (fi_ioc& piece : lists) {
    if (piece.count != 0) std::memcpy(out, piece.addr, piece.count * size);
    piece.addr = out;
    out += piece.count * size;
  }
}

}  // namespace pullman::ofi
