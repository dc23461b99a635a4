// The completion queues and counters bound to an endpoint, or to one of its contexts
// (fi_ep_bind(3)).
#pragma once

namespace pullman::ofi {

class CompletionQueue;
class Counter;

// A null pointer means that none is bound.
struct CompletionBindings {
  CompletionQueue* send_queue = nullptr;  // for all operations except receives
  CompletionQueue* receive_queue = nullptr;
  bool selective_sends = false;  // FI_SELECTIVE_COMPLETION: only for operations with FI_COMPLETION
  bool selective_receives = false;
  Counter* send_counter = nullptr;
  Counter* receive_counter = nullptr;
  Counter* read_counter = nullptr;
  Counter* write_counter = nullptr;
};

}  // namespace pullman::ofi
