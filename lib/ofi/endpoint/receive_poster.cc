#include "ofi/endpoint/receive_poster.h"

#include <rdma/fi_errno.h>

#include <array>
#include <span>

namespace pullman::ofi {
namespace {

std::span<std::byte> receive_bytes(const iovec& segment) {
  return {static_cast<std::byte*>(segment.iov_base), segment.iov_len};
}

using SegmentArray = std::array<std::span<std::byte>, kMaxSegments>;

Segments segments_of(const ReceiveCall& call, SegmentArray& room) {
  for (std::size_t i = 0; i < call.count; ++i) room[i] = receive_bytes(call.segments[i]);
  return {room.data(), call.count};
}

}  // namespace

ssize_t ReceivePoster::post(const ReceiveCall& call, PeerId source) {
  Operation* operation = operations_.take(call);
  if (operation == nullptr) return -FI_EAGAIN;
  const ssize_t result = operations_.settle(*operation, start(call, source, *operation));
  if (result < 0 && source != kAnyPeer) connections_.reconnect(call.from, source);
  return result;
}

Status ReceivePoster::start(const ReceiveCall& call, PeerId source, Operation& operation) {
  const auto first = call.count == 0 ? std::span<std::byte>() : receive_bytes(call.segments[0]);
  const std::uint8_t space = space_at(call.lane->index, call.space);
  if (space == 0 && call.count <= 1) {
    return transport_->receive(source, call.tag, call.ignore, first, operation.request);
  }
  const ReceiveOptions options{.space = space};
  if (call.count <= 1) {
    return transport_->receive(source, call.tag, call.ignore, first, options, operation.request);
  }
  SegmentArray room;
  return transport_->receive(source, call.tag, call.ignore, segments_of(call, room), options,
                             operation.request);
}

Status ReceivePoster::start_claimed(const Claimed& claimed, const ReceiveCall& call,
                                    Operation& operation) {
  SegmentArray room;
  return transport_->receive_claimed(claimed, segments_of(call, room), operation.request);
}

}  // namespace pullman::ofi
