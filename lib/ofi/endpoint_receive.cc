// Endpoint: receives of every kind, and looking before receiving.
#include <rdma/fi_errno.h>

#include <array>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kLooking = FI_PEEK | FI_CLAIM | FI_DISCARD;

std::span<std::byte> bytes_of(const iovec& piece) {
  return {static_cast<std::byte*>(piece.iov_base), piece.iov_len};
}

}  // namespace

ssize_t Endpoint::receive(const ReceiveCall& call) {
  Locked locked(domain_.lock());
  return begin(call);
}

ssize_t Endpoint::begin(const ReceiveCall& call) {
  if (!enabled_) return -FI_EOPBADSTATE;
  undo_wait();
  if (call.count > kMostPieces) return -FI_EINVAL;
  const PeerId source = source_of(call);
  if (source == kAnyPeer && is_directed(call)) return -FI_EINVAL;
  if ((call.flags & kLooking) != 0) return look(call, source);
  if (call.space == Space::kMessages) {
    const bool many = (call.flags & FI_MULTI_RECV) != 0;
    if (many && (call.count != 1 || call.pieces[0].iov_len == 0)) return -FI_EINVAL;
    if (shared_.active()) {
      shared_.wait(call);
      return 0;
    }
    if (many) {
      shared_.begin(call);
      refill();
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
  if (result < 0 && source != kAnyPeer) meet_again(call.from, source);
  return result;
}

void Endpoint::prepare(Operation& operation, const ReceiveCall& call) const {
  operation.context = call.context;
  operation.flags = completion_flags(call);
  operation.queue = outlets_.receive_queue;
  operation.announced = !outlets_.selective_receives || (call.flags & FI_COMPLETION) != 0;
  operation.counter = counter_for(call);
  operation.shared = nullptr;
  operation.taken = nullptr;
}

Status Endpoint::start(const ReceiveCall& call, PeerId source, Operation& operation) {
  const auto first = call.count == 0 ? std::span<std::byte>() : bytes_of(call.pieces[0]);
  if (call.space == Space::kTagged && call.count <= 1) {
    return context_->receive(source, call.tag, call.ignore, first, operation.request);
  }
  const ReceiveOptions options{.space = static_cast<std::uint8_t>(call.space)};
  if (call.count <= 1) {
    return context_->receive(source, call.tag, call.ignore, first, options, operation.request);
  }
  std::array<std::span<std::byte>, kMostPieces> pieces;
  for (std::size_t i = 0; i < call.count; ++i) pieces[i] = bytes_of(call.pieces[i]);
  return context_->receive(source, call.tag, call.ignore, Pieces(pieces.data(), call.count),
                           options, operation.request);
}

// The multi-receive buffer gets its next message, or the receives behind it their turn. Not from
// inside a completion: this calls the context.
void Endpoint::refill() {
  for (;;) {
    shared_.want_refill(false);
    if (shared_.active()) {
      if (!post_shared()) return;
    } else if (shared_.any_waiting()) {
      const ReceiveCall next = shared_.first_waiting();
      if ((next.flags & FI_MULTI_RECV) != 0) {
        shared_.begin(next);
      } else if (post(next, source_of(next)) == -FI_EAGAIN) {
        shared_.want_refill(true);
        return;
      }
      shared_.drop_first_waiting();
    } else {
      return;
    }
  }
}

// True if the buffer took a message at once: there may be more.
bool Endpoint::post_shared() {
  Operation* operation = operations_.take();
  if (operation == nullptr) {
    shared_.want_refill(true);
    return false;
  }
  SharedBuffer& buffer = shared_.buffer();
  prepare(*operation, buffer.call);
  operation->shared = &buffer;
  const iovec rest{buffer.at, buffer.left};
  ReceiveCall call = buffer.call;
  call.pieces = &rest;
  call.count = 1;
  const Status status = start(call, source_of(call), *operation);
  if (settle(*operation, status) < 0) {
    shared_.end();
    fail(buffer.call, status);
  }
  return shared_.refill_due() || !shared_.active();
}

ssize_t Endpoint::cancel(void* context) {
  Locked locked(domain_.lock());
  if (!context_) return -FI_EOPBADSTATE;
  undo_wait();
  Operation* operation = operations_.find([&](const Operation& one) {
    return one.context == context && (one.flags & FI_RECV) != 0 && !one.request.done();
  });
  if (operation != nullptr) {
    context_->cancel(operation->request);  // its completion says so; too late is no error
    return 0;
  }
  ReceiveCall waiting;
  if (shared_.withdraw(context, waiting)) {
    fail(waiting, Status::kCancelled);
    return 0;
  }
  return triggers_.cancel(*this, context) ? 0 : -FI_ENOENT;
}

}  // namespace pullman::ofi
