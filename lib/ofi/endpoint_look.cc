// Endpoint: looking at what has come before receiving it (FI_PEEK), taking it aside (FI_CLAIM), and
// throwing it away (FI_DISCARD). A claimed message is named by the context of the call that claimed
// it.
#include <rdma/fi_errno.h>

#include <array>

#include "ofi/completion_queue.h"
#include "ofi/endpoint.h"

namespace pullman::ofi {
namespace {

Lane::Claimed& claimed_by(const ReceiveCall& call) {
  return call.lane->claimed[static_cast<std::size_t>(call.space)];
}

void tell_immediate(Completion& answer, const Probe& message) {
  if (!message.immediate) return;
  answer.flags |= FI_REMOTE_CQ_DATA;
  answer.data = *message.immediate;
}

}  // namespace

ssize_t Endpoint::peek_or_claim(const ReceiveCall& call, PeerId source) {
  if (call.lane->bindings.receive_queue == nullptr) return -FI_ENOCQ;
  if ((call.flags & FI_PEEK) != 0) return peek(call, source);
  if ((call.flags & FI_CLAIM) != 0) return take_claimed(call);
  return -FI_EBADFLAGS;
}

ssize_t Endpoint::peek(const ReceiveCall& call, PeerId source) {
  progress();
  const std::uint8_t space = space_at(call.lane->index, call.space);
  const bool takes = (call.flags & (FI_CLAIM | FI_DISCARD)) != 0;
  const auto found = takes ? context_->claim(source, call.tag, call.ignore, space)
                           : context_->probe(source, call.tag, call.ignore, space);
  if (found && (call.flags & FI_DISCARD) != 0) {
    context_->discard(found->claimed);
  } else if (found && takes) {
    claimed_by(call)[call.context] = *found;
  }
  Completion& answer = call.lane->bindings.receive_queue->push();
  answer.context = call.context;
  answer.flags = completion_flags(call);
  answer.tag = call.tag;
  if (found) {
    answer.length = static_cast<std::size_t>(found->length);
    answer.tag = found->tag;
    answer.source = peers_.number(found->source);
    tell_immediate(answer, *found);
  } else {
    answer.error = FI_ENOMSG;
  }
  return 0;
}

ssize_t Endpoint::take_claimed(const ReceiveCall& call) {
  auto& claimed = claimed_by(call);
  const auto found = claimed.find(call.context);
  if (found == claimed.end()) return -FI_EINVAL;
  const Probe message = found->second;
  if ((call.flags & FI_DISCARD) != 0) {
    claimed.erase(found);
    context_->discard(message.claimed);
    Completion& answer = call.lane->bindings.receive_queue->push();
    answer.context = call.context;
    answer.flags = completion_flags(call);
    answer.tag = message.tag;
    tell_immediate(answer, message);
    return 0;
  }
  Operation* operation = operations_.take();
  if (operation == nullptr) return -FI_EAGAIN;
  claimed.erase(found);
  prepare(*operation, call);
  return settle(*operation, receive_claimed(message.claimed, call, *operation));
}

Status Endpoint::receive_claimed(const Claimed& claimed, const ReceiveCall& call,
                                 Operation& operation) {
  std::array<std::span<std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) {
    segments[i] = {static_cast<std::byte*>(call.segments[i].iov_base), call.segments[i].iov_len};
  }
  return context_->receive_claimed(claimed, Segments(segments.data(), call.count),
                                   operation.request);
}

}  // namespace pullman::ofi
