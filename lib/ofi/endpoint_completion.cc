// Endpoint: what becomes of operations that are done.
#include <rdma/fi_errno.h>

#include <type_traits>
#include <utility>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/endpoint.h"
#include "ofi/errors.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {

// Called from inside the context, which must not be called from here.
void Endpoint::handle_done(Request& request) {
  request.on_done = nullptr;
  auto& operation = *static_cast<Operation*>(request.user);
  operation.endpoint->complete(operation);
}

void Endpoint::complete(Operation& operation) {
  const Request& request = operation.request;
  const Status status = request.status();
  const bool success = status == Status::kOk;
  if (operation.shared != nullptr) [[unlikely]]
    use_shared(operation);
  if (operation.scatters) [[unlikely]] {
    operation.scatters = false;
    if (success) operation.scattered->scatter();
  }
  if (!closing_) {
    if (operation.counter != nullptr) operation.counter->count(success);
    if (operation.queue != nullptr && (operation.reports_success || !success)) write(operation);
  }
  end(operation);
}

void Endpoint::end(Operation& operation) {
  operation.is_own_copy = false;
  if (operation.bounce != nullptr) copies_.give_back(std::exchange(operation.bounce, nullptr));
  operations_.give_back(operation);
}

// The application has its buffer back: that is all it hears of the operation.
void Endpoint::tell_copied(Operation& operation) const {
  if (operation.counter != nullptr) operation.counter->count(true);
  if (operation.queue != nullptr && operation.reports_success) {
    Completion& completion = operation.queue->push();
    completion.context = operation.context;
    completion.flags = operation.flags;
  }
  operation.counter = nullptr;
  operation.queue = nullptr;
}

void Endpoint::write(const Operation& operation) const {
  const Request& request = operation.request;
  Completion& completion = operation.queue->push();
  completion.context = operation.context;
  completion.flags = operation.flags;
  if ((operation.flags & FI_RECV) != 0) {
    completion.length = request.length();
    completion.buffer = operation.taken;
    completion.tag = request.tag();
    completion.source = peers_.number(request.source());
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

// The last message a multi-receive buffer has room for gives it back to the application.
void Endpoint::use_shared(Operation& operation) {
  MultiReceiveBuffer& buffer = *operation.shared;
  const bool usable = operation.request.status() == Status::kOk;
  --buffer.in_flight;
  if (operation.taken == nullptr) {
    operation.taken = buffer.at;
    buffer.use(operation.request.length(), usable);
  } else if (!usable && !closing_) {  // it had its place before it was there
    buffer.used_up = true;
  }
  refill_due_ = true;
  if (buffer.used_up && shared_receive_ != nullptr) shared_receive_->note_used_up();
  if (!buffer.used_up || buffer.in_flight != 0 || closing_) return;
  operation.flags |= FI_MULTI_RECV;
  operation.reports_success = true;  // whatever was asked: nothing else says so (fi_msg(3))
  buffer.told = true;
}

template <typename Call>
void Endpoint::fail(const Call& call, Status why) {
  if (Counter* const counter = counter_for(call)) counter->count(false);
  constexpr bool kReceives = std::is_same_v<Call, ReceiveCall>;
  const CompletionBindings& bindings = call.lane->bindings;
  CompletionQueue* const queue = kReceives ? bindings.receive_queue : bindings.send_queue;
  if (queue == nullptr) return;
  Completion& completion = queue->push();
  completion.context = call.context;
  completion.flags = completion_flags(call) | (kReceives ? call.flags & FI_MULTI_RECV : 0);
  if constexpr (kReceives) completion.tag = call.tag;
  completion.error = error_number(why);
  completion.why = why;
}
template void Endpoint::fail(const SendCall& call, Status why);
template void Endpoint::fail(const ReceiveCall& call, Status why);
template void Endpoint::fail(const MemoryCall& call, Status why);
template void Endpoint::fail(const AtomicCall& call, Status why);

}  // namespace pullman::ofi
