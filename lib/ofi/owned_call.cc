#include "ofi/owned_call.h"

#include <array>
#include <cstring>

#include "pullman/operations.h"

namespace pullman::ofi {

template <typename Call>
void OwnedLists::copy_segments(Call& call) {
  segments_.assign(call.segments, call.segments + call.count);
  call.segments = segments_.data();
}
template void OwnedLists::copy_segments(ReceiveCall& call);

template <typename Call>
void OwnedLists::copy_bytes(Call& call) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) length += call.segments[i].iov_len;
  bytes_.resize(length);
  std::byte* out = bytes_.data();
  for (std::size_t i = 0; i < call.count; ++i) {
    const iovec& segment = call.segments[i];
    if (segment.iov_len != 0) std::memcpy(out, segment.iov_base, segment.iov_len);
    out += segment.iov_len;
  }
  segments_ = {{bytes_.data(), length}};
  call.segments = segments_.data();
  call.count = 1;
}

void OwnedLists::copy(SendCall& call) {
  (call.flags & FI_INJECT) != 0 ? copy_bytes(call) : copy_segments(call);
}

void OwnedLists::copy(MemoryCall& call) {
  call.writes && (call.flags & FI_INJECT) != 0 ? copy_bytes(call) : copy_segments(call);
}

// Copies the three lists, one after the other. Operands of an atomic read are ignored.
void OwnedLists::copy(AtomicCall& call) {
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
  copy_elements(std::span(elements_).first(inputs), size_of(kind->type));
}

// Copies the elements of the lists to memory of its own.
void OwnedLists::copy_elements(std::span<fi_ioc> lists, std::size_t size) {
  std::size_t length = 0;
  for (const fi_ioc& segment : lists) length += segment.count * size;
  bytes_.resize(length);
  std::byte* out = bytes_.data();
  for (fi_ioc& segment : lists) {
    if (segment.count != 0) std::memcpy(out, segment.addr, segment.count * size);
    segment.addr = out;
    out += segment.count * size;
  }
}

}  // namespace pullman::ofi
