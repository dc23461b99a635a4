#include "ofi/endpoint/transmitter.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/versions.h"

namespace pullman::ofi {
namespace {

// Flags that ask for something that a plain send does not do.
constexpr std::uint64_t kSpecial =
    FI_INJECT | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | kPriority;

constexpr std::size_t kTooLong = kMaxMessageBytes + 1;

std::span<const std::byte> send_bytes(const iovec& segment) {
  return {static_cast<const std::byte*>(segment.iov_base), segment.iov_len};
}

std::span<const std::byte> first_bytes(const SendCall& call) {
  return call.count == 0 ? std::span<const std::byte>() : send_bytes(call.segments[0]);
}

// A message longer than allowed counts as kTooLong, lest the sum overflow.
std::size_t length_of(const SendCall& call) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) {
    length = std::min(length + std::min(call.segments[i].iov_len, kTooLong), kTooLong);
  }
  return length;
}

// Whether the application waits only for its buffer, and a copy is cheap. Messages short enough for
// an inject are copied by the context anyway.
bool may_bounce(const SendCall& call, std::size_t length) {
  constexpr std::uint64_t kWaitsLonger =
      FI_INJECT | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
  return length > kInjectBytes && length <= BounceBuffers::kBytes &&
         (call.flags & kWaitsLonger) == 0;
}

void gather_segments(const SendCall& call, std::byte* out) {
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto bytes = send_bytes(call.segments[i]);
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  }
}

}  // namespace

ssize_t Transmitter::begin(const SendCall& call) {
  if (!is_enabled(call)) return -FI_EOPBADSTATE;
  const PeerId peer = connections_.peer(call.to);
  if (peer == kAnyPeer || call.count > kMaxSegments) return -FI_EINVAL;
  if (connections_.receive_context(call.to) >= kMaxContexts) return -FI_EINVAL;
  if ((call.flags & FI_INJECT) != 0 && inject(call, peer)) return 0;
  Operation* operation = operations_.take(call);
  if (operation == nullptr) return -FI_EAGAIN;
  const ssize_t result = operations_.settle(*operation, start(call, peer, *operation));
  if (result < 0 && result != -FI_EAGAIN) [[unlikely]]
    connections_.reconnect(call.to, peer);
  return result;
}

SendOptions Transmitter::options_for(const SendCall& call) const {
  SendOptions options;
  options.space = space_at(connections_.receive_context(call.to), call.space);
  options.synchronous = (call.flags & FI_MATCH_COMPLETE) != 0;
  options.until_delivered = (call.flags & FI_DELIVERY_COMPLETE) != 0;
  options.priority = (call.flags & kPriority) != 0;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) options.immediate = call.data;
  return options;
}

// An inject that the context copies now is done on return and needs no operation: most are. Returns
// false if the context could not, and nothing happened.
bool Transmitter::inject(const SendCall& call, PeerId peer) {
  if (call.count > 1 || length_of(call) > kInjectBytes) return false;
  SendOptions options = options_for(call);
  if (options.synchronous || options.until_delivered) return false;
  options.only_copy = true;
  if (transport_->send(peer, call.tag, first_bytes(call), options, injected_) != Status::kOk) {
    return false;
  }
  if (Counter* const counter = counter_for(call)) counter->count(true);
  CompletionQueue* const queue = queue_for(call);
  if (queue == nullptr || !reports_success(call)) return true;
  Completion& completion = queue->push();
  completion.context = call.context;
  completion.flags = completion_flags(call);
  return true;
}

Status Transmitter::start(const SendCall& call, PeerId peer, Operation& operation) {
  const std::size_t length = length_of(call);
  if (length > kMaxMessageBytes) return Status::kInvalidArgument;
  if (may_bounce(call, length) && !transport_->shares_memory(peer) &&
      operations_.take_bounce_buffer(operation) != nullptr) {
    return start_copied(call, length, peer, operation);
  }
  if (call.space == Space::kTagged && call.count <= 1 && (call.flags & kSpecial) == 0 &&
      connections_.receive_context(call.to) == 0) {
    return transport_->send(peer, call.tag, first_bytes(call), operation.request);
  }
  if ((call.flags & FI_INJECT) != 0) return start_inject(call, peer, operation);
  std::array<std::span<const std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) segments[i] = send_bytes(call.segments[i]);
  return transport_->send(peer, call.tag, ConstSegments(segments.data(), call.count),
                          options_for(call), operation.request);
}

// Starts an inject that has to wait: copies its bytes, which are the caller's again on return.
Status Transmitter::start_inject(const SendCall& call, PeerId peer, Operation& operation) {
  const std::size_t length = length_of(call);
  if (length > kInjectBytes) return Status::kInvalidArgument;
  if (operation.make_copy() == nullptr) return Status::kBusy;
  operation.is_own_copy = true;
  gather_segments(call, operation.copy.get());
  const iovec copied{operation.copy.get(), length};
  SendCall again = call;
  again.segments = &copied;
  again.count = 1;
  again.flags &= ~FI_INJECT;
  return start(again, peer, operation);
}

// The context copies a short message of one segment itself; others use the bounce buffer.
Status Transmitter::start_copied(const SendCall& call, std::size_t length, PeerId peer,
                                 Operation& operation) {
  SendOptions options = options_for(call);
  if (call.count == 1) {
    options.only_copy = true;
    const Status status =
        transport_->send(peer, call.tag, send_bytes(call.segments[0]), options, operation.request);
    if (status != Status::kBusy) return status;
    options.only_copy = false;
  }
  options.is_own_copy = true;
  gather_segments(call, operation.bounce);
  return transport_->send(peer, call.tag, {operation.bounce, length}, options, operation.request);
}

}  // namespace pullman::ofi
