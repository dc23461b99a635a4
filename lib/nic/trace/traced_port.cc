#include "nic/trace/traced_port.h"

#include <new>

namespace pullman::nic::trace {

// Without memory the destination's address is missing in the trace, and nothing else.
void TracedPort::resolve(const Address& address, std::uint64_t cookie) {
  inner_->resolve(address, cookie);
  try {
    resolving_.insert_or_assign(cookie, address);
  } catch (const std::bad_alloc&) {
    resolving_.erase(cookie);
  }
}

std::size_t TracedPort::poll_events(std::span<PortEvent> events) {
  using Kind = PortEvent::Kind;
  const std::size_t count = inner_->poll_events(events);
  for (const PortEvent& event : events.first(count)) {
    if (event.kind != Kind::kResolved && event.kind != Kind::kResolveFailed) continue;
    const auto asked = resolving_.find(event.cookie);
    if (asked == resolving_.end()) continue;
    try {
      if (event.kind == Kind::kResolved) ring_.note_resolved(number_, event.to, asked->second);
    } catch (const std::bad_alloc&) {
    }
    resolving_.erase(asked);
  }
  return count;
}

}  // namespace pullman::nic::trace
