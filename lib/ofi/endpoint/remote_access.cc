#include "ofi/endpoint/remote_access.h"

#include "ofi/completion_queue.h"
#include "ofi/counter.h"

namespace pullman::ofi {

void RemoteAccess::bind(Counter& counter, std::uint64_t flags) {
  if (counts_all_) {
    counters_.bind(counter, flags);
  } else if ((flags & FI_REMOTE_WRITE) != 0) {
    immediate_counter_ = &counter;
  }
}

void RemoteAccess::unbind(Counter& counter) {
  counters_.forget(counter);
  if (immediate_counter_ == &counter) immediate_counter_ = nullptr;
}

bool RemoteAccess::counts_any(std::uint64_t flags) const {
  return (immediate_counter_ != nullptr && (flags & FI_REMOTE_WRITE) != 0) ||
         counters_.counts_any(flags);
}

bool RemoteAccess::counts(const Counter& counter) const {
  return counters_.counts(counter) || immediate_counter_ == &counter;
}

void RemoteAccess::report() {
  if (counters_.any()) counters_.count(transport_->remote_use(), counted_);
  regions_.count_use(*transport_);
  const CompletionBindings* const bindings = lanes_.remote_access_bindings();
  if (bindings == nullptr) return;
  while (const auto event = transport_->take_event()) {
    if (immediate_counter_ != nullptr) immediate_counter_->count(true);
    if (bindings->receive_queue == nullptr) continue;
    Completion& completion = bindings->receive_queue->push();
    completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    completion.length = static_cast<std::size_t>(event->length);
    completion.data = event->immediate;
    completion.source = connections_.number(event->source);
  }
}

}  // namespace pullman::ofi
