// Endpoint: the transmit and receive contexts of a scalable one, and receives that several
// endpoints share.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "ofi/capabilities.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"
#include "ofi/guarded.h"
#include "ofi/receive_pool.h"

namespace pullman::ofi {

// Null: there is no such context, or it is open. One that was closed opens again.
Endpoint::Side* Endpoint::open_side(Sides& sides, int index, std::size_t fid_class, void* context) {
  const auto place = static_cast<std::size_t>(index);
  if (index < 0 || place >= sides.size()) return nullptr;
  std::unique_ptr<Side>& side = sides[place];
  if (side == nullptr) side = std::make_unique<Side>();
  if (side->open) return nullptr;
  side->open = true;
  side->lane.index = static_cast<std::uint8_t>(place);
  side->handle.fid = {
      .fclass = fid_class, .context = context, .ops = &endpoint_object_operations()};
  fill_tables(side->handle);
  side->handle.endpoint = this;
  side->handle.lane = &side->lane;
  side->handle.send_flags = handle_.send_flags;
  side->handle.receive_flags = handle_.receive_flags;
  return side.get();
}

int Endpoint::open_transmit(int index, fi_tx_attr* attributes, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    Side* side = open_side(transmitters_, index, FI_CLASS_TX_CTX, context);
    if (side == nullptr) return -FI_EINVAL;
    if (attributes != nullptr) {
      side->handle.send_flags = attributes->op_flags;
      describe(*attributes);
    }
    *out = &side->handle;
    return 0;
  });
}

int Endpoint::open_receive(int index, fi_rx_attr* attributes, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    Side* side = open_side(receivers_, index, FI_CLASS_RX_CTX, context);
    if (side == nullptr) return -FI_EINVAL;
    if (attributes != nullptr) {
      side->handle.receive_flags = attributes->op_flags;
      describe(*attributes);
    }
    *out = &side->handle;
    return 0;
  });
}

// Null: it is not one of a context.
Endpoint::Side* Endpoint::side_of(const EndpointHandle& handle) {
  for (const Sides* sides : {&transmitters_, &receivers_}) {
    for (const auto& side : *sides) {
      if (side != nullptr && &side->handle == &handle) return side.get();
    }
  }
  return nullptr;
}

bool Endpoint::any_side_open() const {
  const auto is_open = [](const auto& side) { return side != nullptr && side->open; };
  return std::any_of(transmitters_.begin(), transmitters_.end(), is_open) ||
         std::any_of(receivers_.begin(), receivers_.end(), is_open);
}

// The endpoint's packets go on. What is under way may still use the application's memory: it has as
// long to end as a closing endpoint's has.
int Endpoint::close_side(EndpointHandle& handle) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    Side& side = *side_of(handle);
    Lane& lane = side.lane;
    if (lane.aliases != 0) return -FI_EBUSY;
    withdraw(lane);
    const auto end = std::chrono::steady_clock::now() + place_.config().close_timeout;
    while (!is_idle(lane) && std::chrono::steady_clock::now() < end) progress();
    if (!is_idle(lane)) return -FI_EBUSY;
    unbind(lane);
    lane.claimed.clear();
    side.open = false;
    return 0;
  });
}

// Queues and counters that other contexts have, too, stay the endpoint's.
void Endpoint::unbind(Lane& lane) {
  const Outlets gone = std::exchange(lane.outlets, Outlets());
  const auto left = queues();
  for (CompletionQueue* queue : {gone.send_queue, gone.receive_queue}) {
    if (queue != nullptr && std::find(left.begin(), left.end(), queue) == left.end()) {
      queue->detach(*this);
    }
  }
  for (Counter* counter :
       {gone.send_counter, gone.receive_counter, gone.read_counter, gone.write_counter}) {
    if (counter != nullptr) stop_feeding(*counter);
  }
}

// Nothing of it begins any more, and nothing is said of what has not been matched.
void Endpoint::withdraw(Lane& lane) {
  lane.sends = lane.receives = false;
  triggers_.forget(lane);
  lane.shared.withdraw_all();
  lane.shared.end();
  operations_.for_each([&](Operation& one) {
    if (one.lane != &lane || (one.flags & FI_RECV) == 0) return;
    one.queue = nullptr;
    one.counter = nullptr;
    context_->cancel(one.request);
  });
}

bool Endpoint::is_idle(const Lane& lane) {
  return operations_.find([&](const Operation& one) { return one.lane == &lane; }) == nullptr;
}

bool Endpoint::match_pool() {
  return pool_->match();
}

bool Endpoint::take(const ReceiveCall& call, SharedBuffer* buffer) {
  if (!context_) return false;
  const PeerId source = source_of(call);
  if (source == kAnyPeer && is_directed(call)) return false;
  const std::uint8_t space = space_at(0, call.space);
  if (!context_->probe(source, call.tag, call.ignore, space)) return false;
  Operation* operation = operations_.take();
  if (operation == nullptr) {
    refill_due_ = true;
    return false;
  }
  const auto found = context_->claim(source, call.tag, call.ignore, space);
  ReceiveCall own = call;
  own.lane = &own_;
  prepare(*operation, own);
  iovec rest{};
  if (buffer != nullptr) {
    rest = {buffer->at, buffer->left};
    own.pieces = &rest;
    own.count = 1;
    buffer->busy = true;
    operation->shared = buffer;
  }
  std::array<std::span<std::byte>, kMostPieces> pieces;
  for (std::size_t i = 0; i < own.count; ++i) {
    pieces[i] = {static_cast<std::byte*>(own.pieces[i].iov_base), own.pieces[i].iov_len};
  }
  const Status status = context_->receive_claimed(found->claimed, Pieces(pieces.data(), own.count),
                                                  operation->request);
  undo_wait();
  if (settle(*operation, status) < 0) {
    if (buffer != nullptr) buffer->busy = false;
    fail(own, status);
  }
  return true;
}

}  // namespace pullman::ofi
