#include "ofi/endpoint/outstanding.h"

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/errors.h"

namespace pullman::ofi {

ssize_t OutstandingOperations::refuse(Operation& operation, Status status) {
  give_back(operation);
  return -error_number(status);
}

// Called from inside the context, so it must not call the context.
void OutstandingOperations::handle_done(Request& request) {
  request.on_done = nullptr;
  auto& operation = *static_cast<Operation*>(request.user);
  operation.owner->complete(operation);
}

void OutstandingOperations::complete(Operation& operation) {
  const bool success = operation.request.status() == Status::kOk;
  if (operation.multi_receive != nullptr) [[unlikely]]
    leave_buffer(operation);
  if (operation.scatters) [[unlikely]] {
    operation.scatters = false;
    if (success) operation.scattered->scatter();
  }
  if (reporting_) {
    if (operation.counter != nullptr) operation.counter->count(success);
    if (operation.queue != nullptr && (operation.reports_success || !success)) {
      write_completion(operation);
    }
  }
  give_back(operation);
}

void OutstandingOperations::give_back(Operation& operation) {
  operation.is_own_copy = false;
  if (operation.bounce != nullptr) {
    bounce_buffers_.give_back(std::exchange(operation.bounce, nullptr));
  }
  pool_.give_back(operation);
}

// The application may reuse its buffer, and gets no further report of the operation.
void OutstandingOperations::report_copied(Operation& operation) const {
  if (operation.counter != nullptr) operation.counter->count(true);
  if (operation.queue != nullptr && operation.reports_success) {
    Completion& completion = operation.queue->push();
    completion.context = operation.context;
    completion.flags = operation.flags;
  }
  operation.counter = nullptr;
  operation.queue = nullptr;
}

void OutstandingOperations::write_completion(const Operation& operation) const {
  const Request& request = operation.request;
  Completion& completion = operation.queue->push();
  completion.context = operation.context;
  completion.flags = operation.flags;
  if ((operation.flags & FI_RECV) != 0) {
    completion.length = request.length();
    completion.buffer = operation.taken;
    completion.tag = request.tag();
    completion.source = connections_.number(request.source());
    if (const auto immediate = request.immediate()) {
      completion.flags |= FI_REMOTE_CQ_DATA;
      completion.data = *immediate;
    }
  }
  if (request.status() == Status::kOk) [[likely]]
    return;
  completion.error = error_number(request.status());
  completion.why = request.status();
  if (request.status() == Status::kTruncated) {
    completion.cut_off = static_cast<std::size_t>(request.message_length()) - request.length();
  }
}

// The last message that fits into a multi-receive buffer returns it to the application.
void OutstandingOperations::leave_buffer(Operation& operation) {
  MultiReceiveBuffer& buffer = *operation.multi_receive;
  const bool usable = operation.request.status() == Status::kOk;
  --buffer.in_flight;
  if (operation.taken == nullptr) {
    operation.taken = buffer.at;
    buffer.use(operation.request.length(), usable);
  } else if (!usable && reporting_) {  // a shared receive context assigned its place when it began
    buffer.used_up = true;
  }
  refill_due_ = true;
  if (buffer.used_up) buffer.notify_owner();
  if (!buffer.used_up || buffer.in_flight != 0 || !reporting_) return;
  operation.flags |= FI_MULTI_RECV;
  operation.reports_success = true;  // even for a selective queue: nothing else tells (fi_msg(3))
  buffer.returned = true;
}

Operation* OutstandingOperations::find_receive(const Lane& lane, const void* context) const {
  return pool_.find([&](const Operation& one) {
    return one.lane == &lane && one.context == context && (one.flags & FI_RECV) != 0 &&
           !one.request.done();
  });
}

bool OutstandingOperations::any_counted_by(const Counter& counter) const {
  return pool_.find([&](const Operation& one) { return one.counter == &counter; }) != nullptr;
}

// Operations whose bytes are in the provider's memory are not counted.
bool OutstandingOperations::any_using_memory_of(const Lane& lane) const {
  return pool_.find([&](const Operation& one) {
    return one.lane == &lane && one.bounce == nullptr && !one.is_own_copy;
  }) != nullptr;
}

void OutstandingOperations::withdraw(const Lane& lane, Transport& transport) {
  pool_.for_each([&](Operation& one) {
    if (one.lane != &lane) return;
    one.queue = nullptr;
    one.counter = nullptr;
    if ((one.flags & FI_RECV) != 0) transport->cancel(one.request);
  });
}

}  // namespace pullman::ofi
