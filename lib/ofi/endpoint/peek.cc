#include "ofi/endpoint/peek.h"

#include <rdma/fi_errno.h>

#include "ofi/completion_queue.h"

namespace pullman::ofi {
namespace {

Lane::Claimed& claimed_by(const ReceiveCall& call) {
  return call.lane->claimed[static_cast<std::size_t>(call.space)];
}

Completion& write_answer(const ReceiveCall& call, Tag tag) {
  Completion& answer = call.lane->bindings.receive_queue->push();
  answer.context = call.context;
  answer.flags = completion_flags(call);
  answer.tag = tag;
  return answer;
}

void add_immediate(Completion& answer, const Probe& message) {
  if (!message.immediate) return;
  answer.flags |= FI_REMOTE_CQ_DATA;
  answer.data = *message.immediate;
}

}  // namespace

ssize_t Peek::begin(const ReceiveCall& call, PeerId source) {
  if (call.lane->bindings.receive_queue == nullptr) return -FI_ENOCQ;
  if ((call.flags & FI_PEEK) != 0) return peek(call, source);
  if ((call.flags & FI_CLAIM) != 0) return receive_claimed(call);
  return -FI_EBADFLAGS;
}

ssize_t Peek::peek(const ReceiveCall& call, PeerId source) {
  progress_.progress();
  const std::uint8_t space = space_at(call.lane->index, call.space);
  const bool claims = (call.flags & (FI_CLAIM | FI_DISCARD)) != 0;
  const auto found = claims ? transport_->claim(source, call.tag, call.ignore, space)
                            : transport_->probe(source, call.tag, call.ignore, space);
  if (found && (call.flags & FI_DISCARD) != 0) {
    transport_->discard(found->claimed);
  } else if (found && claims) {
    claimed_by(call)[call.context] = *found;
  }
  Completion& answer = write_answer(call, found ? found->tag : call.tag);
  if (!found) {
    answer.error = FI_ENOMSG;
    return 0;
  }
  answer.length = static_cast<std::size_t>(found->length);
  answer.source = connections_.number(found->source);
  add_immediate(answer, *found);
  return 0;
}

ssize_t Peek::receive_claimed(const ReceiveCall& call) {
  auto& claimed = claimed_by(call);
  const auto found = claimed.find(call.context);
  if (found == claimed.end()) return -FI_EINVAL;
  const Probe message = found->second;
  if ((call.flags & FI_DISCARD) != 0) {
    claimed.erase(found);
    transport_->discard(message.claimed);
    add_immediate(write_answer(call, message.tag), message);
    return 0;
  }
  Operation* operation = operations_.take(call);
  if (operation == nullptr) return -FI_EAGAIN;
  claimed.erase(found);
  return operations_.settle(*operation, poster_.start_claimed(message.claimed, call, *operation));
}

void Peek::discard_claimed(Lane& lane) {
  for (Lane::Claimed& claimed : lane.claimed) {
    for (const auto& [context, message] : claimed) transport_->discard(message.claimed);
    claimed.clear();
  }
}

}  // namespace pullman::ofi
