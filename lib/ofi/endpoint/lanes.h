// The lanes of an endpoint: its own, and those of the transmit and receive contexts of a scalable
// endpoint (fi_scalable_ep(3)), with the handles that the application has for them. Neither starts
// nor reports operations.
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
    kClosing,  // its operations were taken back; all it can do is close again
  };

  EndpointHandle handle;
  Lane lane;
  State state = State::kClosed;
};

class Lanes {
 public:
  enum class Direction { kTransmit, kReceive };

  // Makes the lanes of a plain endpoint, which has no contexts.
  Lanes() = default;
  Lanes(std::size_t transmit_contexts, std::size_t receive_contexts)
      : transmit_(transmit_contexts), receive_(receive_contexts) {}

  // A plain endpoint uses it for all operations, a scalable one for none.
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

  // Opens the context of that index, with the endpoint and the flags of `parent`; it may have been
  // closed before. Returns null if there is no such index, or it is open.
  ScalableContext* open(Direction direction, int index, const EndpointHandle& parent,
                        void* application_context);
  // Returns null if the handle is not a context's.
  ScalableContext* find(const EndpointHandle& handle);
  bool is_closing(const EndpointHandle& handle);
  bool any_open() const;

  // Returns where accesses by peers are reported. Nothing tells for which receive context a peer
  // writes, so the first that has a queue reports it. Returns null if no context has one yet.
  const CompletionBindings* remote_access_bindings() const;

 private:
  using Contexts = std::vector<std::unique_ptr<ScalableContext>>;

  Lane own_;
  Contexts transmit_;  // by index; null: not opened yet
  Contexts receive_;
};

}  // namespace pullman::ofi
