#include "ofi/endpoint/atomic_initiator.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace pullman::ofi {
namespace {

// Room for the elements of the largest atomic.
using Room = std::array<std::byte, kMaxAtomicBytes>;

// Caps each count, lest the sum overflow: more than the cap is too many anyway.
std::size_t elements_in(std::span<const fi_ioc> segments) {
  std::size_t count = 0;
  for (const fi_ioc& segment : segments) count += std::min(segment.count, kMaxAtomicBytes + 1);
  return count;
}

bool is_segment_list(std::span<const fi_ioc> segments) {
  return segments.size() <= kMaxSegments && (segments.empty() || segments.data() != nullptr);
}

bool have_addresses(std::span<const fi_ioc> segments) {
  return std::none_of(segments.begin(), segments.end(),
                      [](const fi_ioc& segment) { return segment.addr == nullptr; });
}

// Returns all elements as one range: in place, or gathered in `room`, which is large enough.
std::span<const std::byte> gather_elements(std::span<const fi_ioc> segments, std::size_t size,
                                           Room& room) {
  if (segments.size() == 1) {
    return {static_cast<const std::byte*>(segments[0].addr), segments[0].count * size};
  }
  std::byte* out = room.data();
  for (const fi_ioc& segment : segments) {
    if (segment.count != 0) std::memcpy(out, segment.addr, segment.count * size);
    out += segment.count * size;
  }
  return {room.data(), out};
}

}  // namespace

ssize_t AtomicInitiator::begin(const AtomicCall& call) {
  const auto kind = find_atomic(call.kind, call.type, call.op);
  if (!kind) return -FI_EOPNOTSUPP;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) return -FI_EBADFLAGS;
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  const PeerId peer = connections_.peer(call.at);
  if (peer == kAnyPeer || !is_complete(call, *kind)) return -FI_EINVAL;
  Operation* operation = operations_.take(call);
  if (operation == nullptr) return -FI_EAGAIN;
  const ssize_t result = operations_.settle(*operation, start(call, *kind, peer, *operation));
  if (result < 0 && result != -FI_EAGAIN) connections_.reconnect(call.at, peer);
  return result;
}

bool is_complete(const AtomicCall& call, const Atomic& kind) {
  if (!is_segment_list(call.operands) || !is_segment_list(call.compares) ||
      !is_segment_list(call.results))
    return false;
  const std::size_t count =
      kind.op == AtomicOp::kRead ? elements_in(call.results) : elements_in(call.operands);
  const bool addressed = (kind.op == AtomicOp::kRead || have_addresses(call.operands)) &&
                         (call.kind != AtomicKind::kCompare || have_addresses(call.compares)) &&
                         (call.kind == AtomicKind::kWrite || have_addresses(call.results));
  return addressed && count != 0 && count <= max_elements(call.kind, kind.type) &&
         (call.kind != AtomicKind::kCompare || elements_in(call.compares) == count) &&
         (call.kind == AtomicKind::kWrite || elements_in(call.results) == count);
}

Status AtomicInitiator::start(const AtomicCall& call, Atomic atomic, PeerId peer,
                              Operation& operation) {
  const std::size_t size = size_of(atomic.type);
  Room operands, compares;
  const bool reads = atomic.op == AtomicOp::kRead;
  atomic.count = elements_in(reads ? call.results : call.operands);
  if (!reads) atomic.operand = gather_elements(call.operands, size, operands);
  if (call.kind == AtomicKind::kCompare)
    atomic.compare = gather_elements(call.compares, size, compares);
  const RemotePlace target{.key = call.key, .offset = call.offset};
  if (call.results.size() <= 1) {
    if (call.results.size() == 1) {
      atomic.result = {static_cast<std::byte*>(call.results[0].addr), atomic.count * size};
    }
    return transport_->atomic(peer, target, atomic, operation.request);
  }
  if (operation.scattered == nullptr) operation.scattered.reset(new (std::nothrow) ScatteredResult);
  if (operation.scattered == nullptr) return Status::kBusy;
  ScatteredResult& scattered = *operation.scattered;
  scattered.count = call.results.size();
  std::transform(call.results.begin(), call.results.end(), scattered.segments.begin(),
                 [size](const fi_ioc& segment) {
                   return iovec{segment.addr, segment.count * size};
                 });
  atomic.result = std::span(scattered.bytes).first(atomic.count * size);
  const Status status = transport_->atomic(peer, target, atomic, operation.request);
  if (status == Status::kOk) scattered.scatter();
  operation.scatters = status == Status::kPending;
  return status;
}

void ScatteredResult::scatter() const {
  const std::byte* from = bytes.data();
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(segments[i].iov_base, from, segments[i].iov_len);
    from += segments[i].iov_len;
  }
}

}  // namespace pullman::ofi
