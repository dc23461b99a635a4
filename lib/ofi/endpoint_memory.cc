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
    if (call.segments[i].iov_len > left) return true;
    left -= call.segments[i].iov_len;
  }
  return false;
}

}  // namespace

ssize_t Endpoint::begin(const MemoryCall& call) {
  if (!call.lane->sends) return -FI_EOPBADSTATE;
  note_call();
  const PeerId peer = peers_.peer(call.at);
  if (peer == kAnyPeer || call.count > kMaxSegments || is_too_long(call)) return -FI_EINVAL;
  Operation* operation = operations_.take();
  if (operation == nullptr) return -FI_EAGAIN;
  operation->context = call.context;
  operation->flags = completion_flags(call);
  operation->queue = call.silent ? nullptr : call.lane->bindings.send_queue;
  operation->reports_success =
      !call.lane->bindings.selective_sends || (call.flags & FI_COMPLETION) != 0;
  operation->counter = counter_for(call);
  operation->lane = call.lane;
  operation->shared = nullptr;
  const Status status = call.writes ? put(call, peer, *operation) : get(call, peer, *operation);
  const ssize_t result = settle(*operation, status);
  if (result < 0 && result != -FI_EAGAIN) reconnect(call.at, peer);
  return result;
}

Status Endpoint::put(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<const std::byte>, kMaxSegments> segments;
  std::size_t length = 0;
  for (std::size_t i = 0; i < call.count; ++i) {
    segments[i] = {static_cast<const std::byte*>(call.segments[i].iov_base),
                   call.segments[i].iov_len};
    length += segments[i].size();
  }
  std::size_t count = call.count;
  if ((call.flags & FI_INJECT) != 0) {
    if (length > kInjectBytes) return Status::kInvalidArgument;
    if (operation.make_copy() == nullptr) return Status::kBusy;
    operation.is_own_copy = true;
    std::byte* out = operation.copy.get();
    for (std::size_t i = 0; i < call.count; ++i) {
      if (!segments[i].empty()) std::memcpy(out, segments[i].data(), segments[i].size());
      out += segments[i].size();
    }
    segments[0] = {operation.copy.get(), length};
    count = 1;
  }
  PutOptions options;
  if ((call.flags & FI_REMOTE_CQ_DATA) != 0) options.immediate = call.data;
  return context_->put(peer, {.key = call.key, .offset = call.offset},
                       ConstSegments(segments.data(), count), options, operation.request);
}

Status Endpoint::get(const MemoryCall& call, PeerId peer, Operation& operation) {
  std::array<std::span<std::byte>, kMaxSegments> segments;
  for (std::size_t i = 0; i < call.count; ++i) {
    segments[i] = {static_cast<std::byte*>(call.segments[i].iov_base), call.segments[i].iov_len};
  }
  return context_->get(peer, {.key = call.key, .offset = call.offset},
                       Segments(segments.data(), call.count), operation.request);
}

// Nothing says for which receive context a peer writes: the first that has a queue is told. Null:
// there is none yet, of a scalable endpoint.
const CompletionBindings* Endpoint::bindings_for_events() const {
  if (receivers_.empty()) return &own_.bindings;
  for (const auto& side : receivers_) {
    if (side != nullptr && side->lane.bindings.receive_queue != nullptr)
      return &side->lane.bindings;
  }
  return nullptr;
}

// What peers have done to memory here: written with immediate data, and anything at all.
void Endpoint::take_events() {
  if (remote_access_counters_.any())
    remote_access_counters_.count(context_->remote_use(), counted_use_);
  domain_.regions().count_use(*context_);
  const CompletionBindings* const bindings = bindings_for_events();
  if (bindings == nullptr) return;
  while (const auto event = context_->take_event()) {
    if (immediate_counter_ != nullptr) immediate_counter_->count(true);
    if (bindings->receive_queue == nullptr) continue;
    Completion& completion = bindings->receive_queue->push();
    completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    completion.length = static_cast<std::size_t>(event->length);
    completion.data = event->immediate;
    completion.source = peers_.number(event->source);
  }
}

}  // namespace pullman::ofi
