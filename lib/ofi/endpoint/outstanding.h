// The outstanding operations of an endpoint. Each is taken for a call, settled with the Pullman
// context's answer, and given back when it completes, which writes the completion and counts it.
// Does not know how an operation is started. Under the domain's lock.
#pragma once

#include <rdma/fabric.h>
#include <sys/types.h>

#include <type_traits>
#include <utility>

#include "ofi/calls.h"
#include "ofi/endpoint/bounce_buffers.h"
#include "ofi/endpoint/connections.h"
#include "ofi/endpoint/lane.h"
#include "ofi/endpoint/operation.h"
#include "ofi/endpoint/operation_pool.h"
#include "ofi/limits.h"
#include "pullman/status.h"

namespace pullman::ofi {

class OutstandingOperations {
 public:
  // `connections` tells the sources of received messages.
  explicit OutstandingOperations(const Connections& connections) : connections_(connections) {}
  OutstandingOperations(const OutstandingOperations&) = delete;
  OutstandingOperations& operator=(const OutstandingOperations&) = delete;

  // Returns an operation that reports to the call's lane, or null if too many are outstanding.
  template <typename Call>
  Operation* take(const Call& call) {
    Operation* const operation = pool_.take();
    if (operation == nullptr) [[unlikely]]
      return nullptr;
    operation->context = call.context;
    operation->flags = completion_flags(call);
    operation->queue = queue_for(call);
    operation->reports_success = reports_success(call);
    operation->counter = counter_for(call);
    operation->lane = call.lane;
    operation->multi_receive = nullptr;
    if constexpr (std::is_same_v<Call, ReceiveCall>) operation->taken = nullptr;
    return operation;
  }
  // It was not started; reports nothing.
  void give_back(Operation& operation);
  // Returns a bounce buffer to send its bytes from, or null if none is left.
  std::byte* take_bounce_buffer(Operation& operation) {
    return operation.bounce = bounce_buffers_.take();
  }

  // Takes the context's answer and returns the result of the call: 0 if a completion follows or has
  // been written.
  ssize_t settle(Operation& operation, Status status) {
    if (status == Status::kPending) {
      operation.request.on_done = handle_done;
      if (operation.bounce != nullptr) report_copied(operation);
      return 0;
    }
    if (status == Status::kOk || status == Status::kTruncated) {
      complete(operation);
      return 0;
    }
    return refuse(operation, status);
  }

  // Returns the receive of that lane with that application context, or null.
  Operation* find_receive(const Lane& lane, const void* context) const;
  // Whether that counter will count an operation.
  bool any_counted_by(const Counter& counter) const;
  // Whether an operation of that lane uses the application's memory.
  bool any_using_memory_of(const Lane& lane) const;
  // The lane closes: reports nothing more of its operations, and cancels its receives.
  void withdraw(const Lane& lane, Transport& transport);
  // The endpoint closes: reports nothing more.
  void stop_reporting() { reporting_ = false; }

  // Whether a message has left a multi-receive buffer, so that another may enter it.
  bool is_refill_due() const { return refill_due_; }
  void set_refill_due(bool due) { refill_due_ = due; }

 private:
  static void handle_done(Request& request);
  void complete(Operation& operation);
  ssize_t refuse(Operation& operation, Status status);
  void report_copied(Operation& operation) const;
  void write_completion(const Operation& operation) const;
  void leave_buffer(Operation& operation);

  const Connections& connections_;
  OperationPool pool_{*this, kMaxOperations};
  BounceBuffers bounce_buffers_;
  bool reporting_ = true;
  bool refill_due_ = false;
};

}  // namespace pullman::ofi
