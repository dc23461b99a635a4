// Endpoint: reading and writing memory that a peer registered.
#include <rdma/fi_errno.h>

#include <array>
#include <cstring>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"

namespace pullman::ofi {
namespace {

// Sums of what cannot be meant could be anything.
bool is_too_long(const MemoryCall& call) {
  std::uint64_t left = kLongestMessage;
  for (std::size_t i = 0; i < call.count; ++i) {
    if (call.pieces[i].iov_len > left) return true;
    left -= call.pieces[i].iov_len;
  }
  return false;
}

}  // namespace

ssize_t Endpoint::begin(const MemoryCall& call) {
  if (!call.lane->sends) return -FI_EOPBADSTATE;
  undo_wait();
  const PeerId peer = peers_.peer(call.at);
  if (peer == kAnyPeer || call.count > kMaxSegments || is_too_long(call)) return -FI_EINVAL;
  Operation* operation = operations_.take();
  if (operation == nullptr) return -FI_EAGAIN;
  operation->context = call.context;
  operation->flags = completion_flags(call);
  operation->queue = call.silent ? nullptr : call.lane->outlets.send_queue;
  operation->announced = !call.lane->outlets.selective_sends || (call.flags & FI_COMPLETION) != 0;
  operation->counter = counter_for(call);
  operation->lane = call.lane;
  operation->shared = nullptr;
  const Status status = call.writes ? put(call, peer, *operation) : get(call, peer, *operation);
  const ssize_t result = settle(*operation, status);
  if (result < 0 && result != -FI_EAGAIN) meet_again(call.at, peer);
  return result;
}

Status Endpoint::put(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<const std::byte>, kMaxSegments> pieces;
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) {
    pieces[i] = {static_cast<const std::byte*>(call.pieces[i].iov_base), call.pieces[i].iov_len};
    length += pieces[i].size();
  }
  std::size_t count = call.count;
  if ((call.flags & FI_INJECT) != 0) {
    if (length > kInjectBytes) return Status::kInvalidArgument;
    if (operation.make_copy() == nullptr) return Status::kBusy;
    operation.is_own_copy = true;
    std::byte* out = operation.copy.get();
    for (std::size_t i = 0; i < call.count; ++i) {
      if (!pieces[i].empty()) std::memcpy(out, pieces[i].data(), pieces[i].size());
      out += pieces[i].size();
    }
    pieces[0] = {operation.copy.get(), length};
    count = 1;
  }
  PutOptions options;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) options.immediate = call.data;
  return context_->put(peer, {.key = call.key, .offset = call.offset},
                       ConstSegments(pieces.data(), count), options, operation.request);
}

Status Endpoint::get(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<std::byte>, kMaxSegments> pieces;
  for (std::size_t i = 0; i < call.count; ++i) {
    pieces[i] = {static_cast<std::byte*>(call.pieces[i].iov_base), call.pieces[i].iov_len};
  }
  return context_->get(peer, {.key = call.key, .offset = call.offset},
                       Segments(pieces.data(), call.count), operation.request);
}

// Nothing says for which receive context a peer writes: the first that has a queue is told. Null:
// there is none yet, of a scalable endpoint.
const Outlets* Endpoint::outlets_of_events() const {
  if (receivers_.empty()) return &own_.outlets;
  for (const auto& side : receivers_) {
    if (side != nullptr && side->lane.outlets.receive_queue != nullptr) return &side->lane.outlets;
  }
  return nullptr;
}

// What peers have done to memory here: written with immediate data, and anything at all.
void Endpoint::take_events() {
  if (use_counters_.any()) use_counters_.count(context_->remote_use(), counted_use_);
  domain_.regions().count_use(*context_);
  const Outlets* const outlets = outlets_of_events();
  if (outlets == nullptr) return;
  while (const auto event = context_->take_event()) {
    if (told_counter_ != nullptr) told_counter_->count(true);
    if (outlets->receive_queue == nullptr) continue;
    Completion& completion = outlets->receive_queue->push();
    completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    completion.length = static_cast<std::size_t>(event->length);
    completion.data = event->immediate;
    completion.source = peers_.number(event->source);
  }
}

}  // namespace pullman::ofi
