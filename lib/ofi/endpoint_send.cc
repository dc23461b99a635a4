// Endpoint: sends of every kind.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "ofi/address_vector.h"
#include "ofi/capabilities.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"
#include "ofi/versions.h"

namespace pullman::ofi {
namespace {

// Anything a plain send does not do.
constexpr std::uint64_t kSpecial =
    FI_INJECT | FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | kPriority;

constexpr std::size_t kTooLong = kLongestMessage + 1;

std::span<const std::byte> bytes_of(const iovec& segment) {
  return {static_cast<const std::byte*>(segment.iov_base), segment.iov_len};
}

// What is longer than any message may be counts as one byte more: sums could be anything.
std::size_t length_of(const SendCall& call) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) {
    length = std::min(length + std::min(call.segments[i].iov_len, kTooLong), kTooLong);
  }
  return length;
}

// The application waits for its buffer at most, and a copy is cheap. Up to an inject's length the
// context copies it anyhow.
bool may_copy(const SendCall& call, std::size_t length) {
  constexpr std::uint64_t kWaitsLonger =
      FI_INJECT | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
  return length > kInjectBytes && length <= BounceBuffers::kBytes &&
         (call.flags & kWaitsLonger) == 0;
}

// To one place.
void gather(const SendCall& call, std::byte* out) {
  for (std::size_t i = 0; i < call.count; ++i) {
    const auto bytes = bytes_of(call.segments[i]);
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  }
}

}  // namespace

SendOptions Endpoint::options_for(const SendCall& call) const {
  SendOptions options;
  options.space = space_at(peers_.context(call.to), call.space);
  options.synchronous = (call.flags & FI_MATCH_COMPLETE) != 0;
  options.until_delivered = (call.flags & FI_DELIVERY_COMPLETE) != 0;
  options.priority = (call.flags & kPriority) != 0;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) options.immediate = call.data;
  return options;
}

bool Endpoint::reports_success(const SendCall& call) {
  return !call.lane->bindings.selective_sends || (call.flags & FI_COMPLETION) != 0;
}

ssize_t Endpoint::begin(const SendCall& call) {
  if (!call.lane->sends) return -FI_EOPBADSTATE;
  note_call();
  const PeerId peer = peers_.peer(call.to);
  if (peer == kAnyPeer || call.count > kMaxSegments) return -FI_EINVAL;
  if (peers_.context(call.to) >= kMaxContexts) return -FI_EINVAL;
  if ((call.flags & FI_INJECT) != 0 && inject(call, peer)) return 0;
  Operation* operation = operations_.take();
  if (operation == nullptr) return -FI_EAGAIN;
  operation->context = call.context;
  operation->flags = completion_flags(call);
  operation->queue = call.silent ? nullptr : call.lane->bindings.send_queue;
  operation->reports_success = reports_success(call);
  operation->counter = counter_for(call);
  operation->lane = call.lane;
  operation->shared = nullptr;
  const Status status = start(call, peer, *operation);
  const ssize_t result = settle(*operation, status);
  if (result < 0 && result != -FI_EAGAIN) [[unlikely]]
    reconnect(call.to, peer);
  return result;
}

Status Endpoint::start(const SendCall& call, PeerId peer, Operation& operation) {
  const std::size_t length = length_of(call);
  if (length > kLongestMessage) return Status::kInvalidArgument;
  if (may_copy(call, length)) {
    operation.bounce = copies_.take();
    if (operation.bounce != nullptr) return start_copied(call, length, peer, operation);
  }
  if (call.space == Space::kTagged && call.count <= 1 && (call.flags & kSpecial) == 0 &&
      peers_.context(call.to) == 0) {
    const auto bytes = call.count == 0 ? std::span<const std::byte>() : bytes_of(call.segments[0]);
    return context_->send(peer, call.tag, bytes, operation.request);
  }
  if ((call.flags & FI_INJECT) != 0) return start_inject(call, peer, operation);
  std::array<std::span<const std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) segments[i] = bytes_of(call.segments[i]);
  return context_->send(peer, call.tag, ConstSegments(segments.data(), call.count),
                        options_for(call), operation.request);
}

// What the context copies now is done on return, and no operation: most are. False: it could not,
// and nothing happened.
bool Endpoint::inject(const SendCall& call, PeerId peer) {
  if (call.count > 1 || length_of(call) > kInjectBytes) return false;
  SendOptions options = options_for(call);
  if (options.synchronous || options.until_delivered) return false;
  options.only_copy = true;
  const auto bytes = call.count == 0 ? std::span<const std::byte>() : bytes_of(call.segments[0]);
  if (context_->send(peer, call.tag, bytes, options, injected_) != Status::kOk) return false;
  const CompletionBindings& bindings = call.lane->bindings;
  if (bindings.send_counter != nullptr) bindings.send_counter->count(true);
  if (call.silent || bindings.send_queue == nullptr || !reports_success(call)) return true;
  Completion& completion = bindings.send_queue->push();
  completion.context = call.context;
  completion.flags = completion_flags(call);
  return true;
}

// The bytes are the caller's again on return: they are copied here.
Status Endpoint::start_inject(const SendCall& call, PeerId peer, Operation& operation) {
  const std::size_t length = length_of(call);
  if (length > kInjectBytes) return Status::kInvalidArgument;
  if (operation.make_copy() == nullptr) return Status::kBusy;
  operation.is_own_copy = true;
  gather(call, operation.copy.get());
  const iovec copied{operation.copy.get(), length};
  SendCall again = call;
  again.segments = &copied;
  again.count = 1;
  again.flags &= ~FI_INJECT;
  return start(again, peer, operation);
}

// A short message in one segment the context copies; for others there is a place.
Status Endpoint::start_copied(const SendCall& call, std::size_t length, PeerId peer,
                              Operation& operation) {
  SendOptions options = options_for(call);
  if (call.count == 1) {
    options.only_copy = true;
    const Status status =
        context_->send(peer, call.tag, bytes_of(call.segments[0]), options, operation.request);
    if (status != Status::kBusy) return status;
    options.only_copy = false;
  }
  options.is_own_copy = true;
  gather(call, operation.bounce);
  return context_->send(peer, call.tag, {operation.bounce, length}, options, operation.request);
}

// What the application is told of a call: 0 if a completion follows or has been written.
ssize_t Endpoint::settle(Operation& operation, Status status) {
  if (status == Status::kPending) {
    operation.request.on_done = handle_done;
    if (operation.bounce != nullptr) tell_copied(operation);
    return 0;
  }
  if (status == Status::kOk || status == Status::kTruncated) {
    complete(operation);
    return 0;
  }
  end(operation);
  return -error_number(status);
}

// A peer that has gone may be back: the next call finds the new one. This one has failed.
void Endpoint::reconnect(fi_addr_t number, PeerId gone) {
  if (!context_) return;  // not enabled: it may share its receives with one that is
  if (context_->peer_state(gone) != PeerState::kGone &&
      context_->peer_state(gone) != PeerState::kUnknown) {
    return;
  }
  number = peers_.without_context(number);
  const Address* address = vector_->find(number);
  if (address != nullptr) connect(number, *address);
}

}  // namespace pullman::ofi
