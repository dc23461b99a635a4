// The lanes of an endpoint: its own, and those of the transmit and receive contexts of a scalable
// endpoint (fi_scalable_ep(3)), with the handles that the application has for these. Starts and
// reports no operation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "ofi/endpoint/handle.h"
#include "ofi/endpoint/lane.h"

namespace pullman::ofi {

// A transmit or receive context of a scalable endpoint.
struct ScalableContext {
  enum class State {
    kClosed,
    kOpen,
    kClosing,  // its operations have been taken back: it can only be closed again
  };

  EndpointHandle handle;
  Lane lane;
  State state = State::kClosed;
};

class Lanes {
 public:
  enum class Direction { kTransmit, kReceive };

  // A plain endpoint has no contexts.
  Lanes() = default;
  Lanes(std::size_t transmit_contexts, std::size_t receive_contexts)
      : transmit_(transmit_contexts), receive_(receive_contexts) {}

  // Of a plain endpoint: all operations. Of a scalable one: none.
  Lane& own() { return own_; }

  template <typename Visit>
  void for_each(Visit&& visit) {
    visit(own_);
    for (const Contexts* contexts : {&transmit_, &receive_}) {
      for (const auto& context : *contexts) {
        if (context != nullptr) visit(context->lane);
      }
    }
  }

  // The context of that index, with the endpoint and the flags of `parent`. One that was closed
  // opens again. Null: there is no such index, or it is open.
  ScalableContext* open(Direction direction, int index, const EndpointHandle& parent,
                        void* application_context);
  // Null: it is no context's handle.
  ScalableContext* find(const EndpointHandle& handle);
  bool is_closing(const EndpointHandle& handle);
  bool any_open() const;

  // Where accesses by peers are reported. Nothing says for which receive context a peer writes: the
  // first that has a queue reports it. Null: a scalable endpoint has none yet.
  const CompletionBindings* remote_access_bindings() const;

 private:
  using Contexts = std::vector<std::unique_ptr<ScalableContext>>;

  Lane own_;
  Contexts transmit_;  // by index; null: never opened
  Contexts receive_;
};

}  // namespace pullman::ofi
