// Where it is said what became of an endpoint's operations.
#pragma once

namespace pullman::ofi {

class CompletionQueue;
class Counter;

// Null: nowhere.
struct CompletionBindings {
  CompletionQueue* send_queue = nullptr;  // of all that is not a receive
  CompletionQueue* receive_queue = nullptr;
  bool selective_sends = false;  // only those with FI_COMPLETION complete
  bool selective_receives = false;
  Counter* send_counter = nullptr;
  Counter* receive_counter = nullptr;
  Counter* read_counter = nullptr;
  Counter* write_counter = nullptr;
};

}  // namespace pullman::ofi
