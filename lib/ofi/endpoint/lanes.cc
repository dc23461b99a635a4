#include "ofi/endpoint/lanes.h"

#include <cstdint>

#include "ofi/endpoint/tables.h"

namespace pullman::ofi {

ScalableContext* Lanes::open(Direction direction, int index, const EndpointHandle& parent,
                             void* application_context) {
  Contexts& contexts = direction == Direction::kTransmit ? transmit_ : receive_;
  const auto at = static_cast<std::size_t>(index);
  if (index < 0 || at >= contexts.size()) return nullptr;
  if (contexts[at] == nullptr) contexts[at] = std::make_unique<ScalableContext>();
  ScalableContext& context = *contexts[at];
  if (context.state != ScalableContext::State::kClosed) return nullptr;
  context.lane = Lane();
  context.lane.index = static_cast<std::uint8_t>(at);
  context.state = ScalableContext::State::kOpen;
  context.handle.fid = {
      .fclass = direction == Direction::kTransmit ? FI_CLASS_TX_CTX : FI_CLASS_RX_CTX,
      .context = application_context,
      .ops = &endpoint_object_operations()};
  fill_tables(context.handle);
  context.handle.endpoint = parent.endpoint;
  context.handle.lane = &context.lane;
  context.handle.send_flags = parent.send_flags;
  context.handle.receive_flags = parent.receive_flags;
  return &context;
}

ScalableContext* Lanes::find(const EndpointHandle& handle) {
  for (const Contexts* contexts : {&transmit_, &receive_}) {
    for (const auto& context : *contexts) {
      if (context != nullptr && &context->handle == &handle) return context.get();
    }
  }
  return nullptr;
}

bool Lanes::is_closing(const EndpointHandle& handle) {
  const ScalableContext* const context = find(handle);
  return context != nullptr && context->state == ScalableContext::State::kClosing;
}

bool Lanes::any_open() const {
  const auto is_open = [](const auto& context) {
    return context != nullptr && context->state != ScalableContext::State::kClosed;
  };
  return std::any_of(transmit_.begin(), transmit_.end(), is_open) ||
         std::any_of(receive_.begin(), receive_.end(), is_open);
}

const CompletionBindings* Lanes::remote_access_bindings() const {
  if (receive_.empty()) return &own_.bindings;
  for (const auto& context : receive_) {
    if (context != nullptr && context->lane.bindings.receive_queue != nullptr) {
      return &context->lane.bindings;
    }
  }
  return nullptr;
}

}  // namespace pullman::ofi
