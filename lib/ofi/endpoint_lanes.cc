// Endpoint: the transmit and receive contexts of a scalable one, and its part of receives that
// several endpoints share.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "ofi/address_vector.h"
#include "ofi/capabilities.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"
#include "ofi/guarded.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {

// Null: there is no such context, or it is open. One that was closed opens again.
Endpoint::Side* Endpoint::open_side(Sides& sides, int index, std::size_t fid_class, void* context) {
  const auto place = static_cast<std::size_t>(index);
  if (index < 0 || place >= sides.size()) return nullptr;
  std::unique_ptr<Side>& side = sides[place];
  if (side == nullptr) side = std::make_unique<Side>();
  if (side->open) return nullptr;
  side->lane = Lane();
  side->open = true;
  side->closing = false;
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

// Attributes that are given say more than the endpoint's, and are told what there is.
template <typename Attributes>
int Endpoint::open_side(Sides& sides, int index, std::size_t fid_class, Attributes* attributes,
                        std::uint64_t EndpointHandle::*flags, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    Side* side = open_side(sides, index, fid_class, context);
    if (side == nullptr) return -FI_EINVAL;
    if (attributes != nullptr) {
      side->handle.*flags = attributes->op_flags;
      describe(*attributes);
    }
    *out = &side->handle;
    return 0;
  });
}

int Endpoint::open_transmit(int index, fi_tx_attr* attributes, fid_ep** out, void* context) {
  return open_side(transmitters_, index, FI_CLASS_TX_CTX, attributes, &EndpointHandle::send_flags,
                   out, context);
}

int Endpoint::open_receive(int index, fi_rx_attr* attributes, fid_ep** out, void* context) {
  return open_side(receivers_, index, FI_CLASS_RX_CTX, attributes, &EndpointHandle::receive_flags,
                   out, context);
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

// The endpoint's packets go on, and what is under way uses the application's memory: it has as long
// to end as a closing endpoint's has. Others have the lock meanwhile: they may be who is waited
// for.
int Endpoint::close_side(Side& side) {
  return guarded([&]() -> int {
    Lane& lane = side.lane;
    std::chrono::steady_clock::time_point end;
    {
      Locked locked(domain_.lock());
      if (lane.aliases != 0) return -FI_EBUSY;
      end = std::chrono::steady_clock::now() + close_timeout_;
      side.closing = true;
      withdraw(lane);
    }
    for (;;) {
      {
        Locked locked(domain_.lock());
        progress();
        if (is_idle(lane)) {
          unbind(lane);
          side.open = false;
          return 0;
        }
      }
      if (std::chrono::steady_clock::now() >= end) return -FI_EBUSY;
      std::this_thread::yield();
    }
  });
}

// Nothing of it begins any more, what was posted and has taken nothing is taken back, and nothing
// is said of it: its completions would be of no use.
void Endpoint::withdraw(Lane& lane) {
  lane.sends = lane.receives = false;
  triggers_.forget(lane);
  lane.shared.withdraw_all();
  if (lane.shared.active()) lane.shared.buffer().used_up = true;
  operations_.for_each([&](Operation& one) {
    if (one.lane != &lane) return;
    one.queue = nullptr;
    one.counter = nullptr;
    if ((one.flags & FI_RECV) != 0) context_->cancel(one.request);
  });
  for (Lane::Claimed& claimed : lane.claimed) {
    for (const auto& [with, message] : claimed) context_->discard(message.claimed);
    claimed.clear();
  }
}

// Those whose bytes are in memory of ours may go on.
bool Endpoint::is_idle(const Lane& lane) {
  return operations_.find([&](const Operation& one) {
    return one.lane == &lane && one.bounce == nullptr && !one.is_own_copy;
  }) == nullptr;
}

// Queues that other contexts have, too, stay the endpoint's. Its counters stay so until they are
// closed: work may count there.
void Endpoint::unbind(Lane& lane) {
  std::vector<CompletionQueue*> left = queues();
  const CompletionBindings gone = std::exchange(lane.bindings, CompletionBindings());
  for (CompletionQueue* queue : {gone.send_queue, gone.receive_queue}) {
    if (queue == nullptr) continue;
    if (std::count(left.begin(), left.end(), queue) == 1) queue->detach(*this);
  }
  for (Counter* counter : lane.remote_counters) {
    remote_access_counters_.forget(*counter);
    if (immediate_counter_ == counter) immediate_counter_ = nullptr;
  }
  lane.remote_counters.clear();
}

// --- Shared receives.

bool Endpoint::match_shared_receive(bool thoroughly) {
  return shared_receive_->match(thoroughly);
}

std::optional<Probe> Endpoint::next_unexpected(Space space) {
  if (!own_.sends) return std::nullopt;  // it is not enabled
  return context_->next_unexpected(space_at(0, space));
}

bool Endpoint::fits(const ReceiveCall& call, const Probe& message) const {
  return ((call.tag ^ message.tag) & ~call.ignore) == 0 &&
         (!is_directed(call) || peers_.peer(call.from) == message.source);
}

bool Endpoint::take(const ReceiveCall& call, MultiReceiveBuffer* buffer) {
  const PeerId source = source_of(call);
  if (!own_.sends || (source == kAnyPeer && is_directed(call))) return false;
  Operation* operation = operations_.take();
  if (operation == nullptr) return false;
  const auto found = context_->claim(source, call.tag, call.ignore, space_at(0, call.space));
  if (!found) {
    operations_.give_back(*operation);
    return false;
  }
  ReceiveCall own = call;
  own.lane = &own_;
  prepare(*operation, own);
  iovec place{};
  if (buffer != nullptr) {
    place = {buffer->at, buffer->left};
    own.segments = &place;
    own.count = 1;
    operation->shared = buffer;
    operation->taken = buffer->at;
    ++buffer->in_flight;
    buffer->use(static_cast<std::size_t>(std::min<std::uint64_t>(found->length, buffer->left)),
                found->length <= buffer->left);
  }
  note_call();
  const Status status = receive_claimed(found->claimed, own, *operation);
  PULLMAN_CHECK(status == Status::kOk || status == Status::kPending ||
                status == Status::kTruncated);  // it was claimed just now
  settle(*operation, status);
  return true;
}

// Whether a message is on its way for such a receive.
bool Endpoint::is_receiving(const void* context) {
  return operations_.find([&](const Operation& one) {
    return one.lane == &own_ && one.context == context && (one.flags & FI_RECV) != 0;
  }) != nullptr;
}

bool Endpoint::knows_source(const ReceiveCall& call) const {
  return !is_directed(call) ||
         (vector_ != nullptr && vector_->find(peers_.without_context(call.from)) != nullptr);
}

PeerState Endpoint::state_of_source(const ReceiveCall& call) const {
  if (!own_.sends || !is_directed(call)) return PeerState::kConnecting;
  return context_->peer_state(peers_.peer(call.from));
}

Status Endpoint::why_gone(fi_addr_t number) const {
  return context_ ? context_->peer_status(peers_.peer(number)) : Status::kOk;
}

}  // namespace pullman::ofi
