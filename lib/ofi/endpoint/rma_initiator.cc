#include "ofi/endpoint/rma_initiator.h"

#include <rdma/fi_errno.h>

#include <array>
#include <cstring>

namespace pullman::ofi {
namespace {

// Subtracts, because a sum could overflow.
bool is_too_long(const MemoryCall& call) {
  std::uint64_t left = kMaxMessageBytes;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (call.segments[i].iov_len > left) return true;
    left -= call.segments[i].iov_len;
  }
  return false;
}

}  // namespace

ssize_t RmaInitiator::begin(const MemoryCall& call) {
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  const PeerId peer = connections_.peer(call.at);
  if (peer == kAnyPeer || call.count > kMaxSegments || is_too_long(call)) return -FI_EINVAL;
  Operation* operation = operations_.take(call);
  if (operation == nullptr) return -FI_EAGAIN;
  const Status status = call.writes ? write(call, peer, *operation) : read(call, peer, *operation);
  const ssize_t result = operations_.settle(*operation, status);
  if (result < 0 && result != -FI_EAGAIN) connections_.reconnect(call.at, peer);
  return result;
}

Status RmaInitiator::write(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<const std::byte>, kMaxSegments> segments;
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) {
    segments[i] = {static_cast<const std::byte*>(call.segments[i].iov_base),
                   call.segments[i].iov_len};
    length += segments[i].size();
  }
  std::size_t count = call.count;
  if ((call.flags & FI_INJECT) != 0) {
    if (length > kInjectBytes) return Status::kInvalidArgument;
    if (operation.make_copy() == nullptr) return Status::kBusy;
    operation.is_own_copy = true;
    std::byte* out = operation.copy.get();
    for (std::size_t i = 0; i < call.count; ++i) {
      if (!segments[i].empty()) std::memcpy(out, segments[i].data(), segments[i].size());
      out += segments[i].size();
    }
    segments[0] = {operation.copy.get(), length};
    count = 1;
  }
  PutOptions options;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) options.immediate = call.data;
  return transport_->put(peer, {.key = call.key, .offset = call.offset},
                         ConstSegments(segments.data(), count), options, operation.request);
}

Status RmaInitiator::read(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) {
    segments[i] = {static_cast<std::byte*>(call.segments[i].iov_base), call.segments[i].iov_len};
  }
  return transport_->get(peer, {.key = call.key, .offset = call.offset},
                         Segments(segments.data(), call.count), operation.request);
}

}  // namespace pullman::ofi
