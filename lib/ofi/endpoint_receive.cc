// Endpoint: receives of every kind, and looking before receiving.
#include <rdma/fi_errno.h>

#include <array>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kPeekFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

std::span<std::byte> bytes_of(const iovec& segment) {
  return {static_cast<std::byte*>(segment.iov_base), segment.iov_len};
}

}  // namespace

ssize_t Endpoint::begin(const ReceiveCall& call) {
  if (!call.lane->receives) return -FI_EOPBADSTATE;
  note_call();
  if (call.count > kMaxSegments) return -FI_EINVAL;
  const PeerId source = source_of(call);
  if (lacks_its_source(call, source)) return -FI_EINVAL;
  if ((call.flags & kPeekFlags) != 0) return peek_or_claim(call, source);
  if (call.space == Space::kMessages) {
    const bool many = (call.flags & FI_MULTI_RECV) != 0;
    if (many && (call.count != 1 || call.segments[0].iov_len == 0)) return -FI_EINVAL;
    MultiReceiveQueue& shared = call.lane->shared;
    if (shared.active()) {
      shared.wait(call);
      return 0;
    }
    if (many) {
      shared.begin(call);
      refill(*call.lane);
      return 0;
    }
  }
  return post(call, source);
}

bool Endpoint::is_directed(const ReceiveCall& call) const {
  return call.from != FI_ADDR_UNSPEC && (caps_ & FI_DIRECTED_RECV) != 0;
}

PeerId Endpoint::source_of(const ReceiveCall& call) const {
  return is_directed(call) ? peers_.peer(call.from) : kAnyPeer;
}

ssize_t Endpoint::post(const ReceiveCall& call, PeerId source) {
  Operation* operation = operations_.take();
  if (operation == nullptr) return -FI_EAGAIN;
  prepare(*operation, call);
  const ssize_t result = settle(*operation, start(call, source, *operation));
  if (result < 0 && source != kAnyPeer) reconnect(call.from, source);
  return result;
}

void Endpoint::prepare(Operation& operation, const ReceiveCall& call) {
  const CompletionBindings& bindings = call.lane->bindings;
  operation.lane = call.lane;
  operation.context = call.context;
  operation.flags = completion_flags(call);
  operation.queue = bindings.receive_queue;
  operation.reports_success = !bindings.selective_receives || (call.flags & FI_COMPLETION) != 0;
  operation.counter = counter_for(call);
  operation.shared = nullptr;
  operation.taken = nullptr;
}

Status Endpoint::start(const ReceiveCall& call, PeerId source, Operation& operation) {
  const auto first = call.count == 0 ? std::span<std::byte>() : bytes_of(call.segments[0]);
  const std::uint8_t space = space_at(call.lane->index, call.space);
  if (space == 0 && call.count <= 1) {
    return context_->receive(source, call.tag, call.ignore, first, operation.request);
  }
  const ReceiveOptions options{.space = space};
  if (call.count <= 1) {
    return context_->receive(source, call.tag, call.ignore, first, options, operation.request);
  }
  std::array<std::span<std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) segments[i] = bytes_of(call.segments[i]);
  return context_->receive(source, call.tag, call.ignore, Segments(segments.data(), call.count),
                           options, operation.request);
}

void Endpoint::refill() {
  refill_due_ = false;
  for_each_lane([this](Lane& lane) { refill(lane); });
}

// The multi-receive buffer gets its next message, or the receives behind it their turn. Not from
// inside a completion: this calls the context.
void Endpoint::refill(Lane& lane) {
  MultiReceiveQueue& shared = lane.shared;
  for (;;) {
    const bool busy = shared.active() && shared.buffer().in_flight != 0;
    if (shared.active() && shared.buffer().used_up && !busy) shared.end();
    if (shared.active()) {
      if (busy || !post_shared(lane)) return;
    } else if (shared.any_waiting()) {
      const ReceiveCall next = shared.first_waiting();
      if ((next.flags & FI_MULTI_RECV) != 0) {
        shared.begin_first_waiting();
      } else if (!post_waiting(next)) {
        refill_due_ = true;
        return;
      }
      shared.drop_first_waiting();
    } else {
      return;
    }
  }
}

// Its turn has come, and what could be refused when it was posted is told as an error now. False:
// there is no room for it now.
bool Endpoint::post_waiting(const ReceiveCall& call) {
  const PeerId source = source_of(call);
  if (lacks_its_source(call, source)) {
    fail(call, Status::kUnknownPeer);
    return true;
  }
  const ssize_t result = post(call, source);
  if (result == -FI_EAGAIN) return false;
  if (result < 0) fail(call, status_of(static_cast<int>(-result)));
  return true;
}

// True if the buffer took a message at once, or no message ever will: there may be more to do.
bool Endpoint::post_shared(Lane& lane) {
  if (MultiReceiveBuffer& buffer = lane.shared.buffer();
      lacks_its_source(buffer.call, source_of(buffer.call))) {
    buffer.used_up = true;
    fail(buffer.call, Status::kUnknownPeer);
    return true;
  }
  Operation* operation = operations_.take();
  if (operation == nullptr) {
    refill_due_ = true;
    return false;
  }
  MultiReceiveBuffer& buffer = lane.shared.buffer();
  prepare(*operation, buffer.call);
  operation->shared = &buffer;
  ++buffer.in_flight;
  const iovec rest{buffer.at, buffer.left};
  ReceiveCall call = buffer.call;
  call.segments = &rest;
  call.count = 1;
  const Status status = start(call, source_of(call), *operation);
  if (settle(*operation, status) < 0) {
    buffer.used_up = true;
    --buffer.in_flight;
    fail(buffer.call, status);
  }
  return buffer.in_flight == 0;
}

ssize_t Endpoint::cancel(Lane& lane, void* context) {
  Locked locked(domain_.lock());
  if (!context_) return -FI_EOPBADSTATE;
  note_call();
  Operation* operation = operations_.find([&](const Operation& one) {
    return one.lane == &lane && one.context == context && (one.flags & FI_RECV) != 0 &&
           !one.request.done();
  });
  if (operation != nullptr) {
    // A message that is on its way there is the buffer's last.
    if (operation->shared != nullptr) {
      operation->shared->used_up = true;
      if (shared_receive_ != nullptr) shared_receive_->note_used_up();
    }
    context_->cancel(operation->request);  // its completion says so; too late is no error
    return 0;
  }
  ReceiveCall waiting;
  if (lane.shared.withdraw(context, waiting)) {
    fail(waiting, Status::kCancelled);
    return 0;
  }
  return triggers_.cancel(*this, lane, context) ? 0 : -FI_ENOENT;
}

}  // namespace pullman::ofi
