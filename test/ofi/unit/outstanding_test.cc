#include "ofi/endpoint/outstanding.h"

#include <rdma/fi_errno.h>

#include "domain.h"
#include "ofi/endpoint/failed_call.h"

namespace pullman::ofi::test {
namespace {

// The operations of an endpoint without NICs, and a lane that reports to one queue.
struct Reporting {
  Reporting() {
    lane.sends = lane.receives = true;
    lane.bindings = {.send_queue = &queue, .receive_queue = &queue};
    lane.bindings.send_counter = lane.bindings.receive_counter = &counter;
  }

  SendCall send(std::uint64_t flags = 0) {
    return {.context = &context, .flags = flags, .lane = &lane};
  }
  ReceiveCall receive() { return {.context = &context, .lane = &lane}; }
  // Finishes an operation as the Pullman context would.
  static void finish(Operation& operation) { operation.request.on_done(operation.request); }

  TestDomain domain;
  CompletionQueue& queue = domain.queue();
  Counter& counter = domain.counter();
  fi_info info{};
  Activity activity;
  Transport transport{info, {}};
  Connections connections{transport, activity};
  OutstandingOperations operations{connections};
  Lane lane;
  int context = 0;
};

class Owner final : public MultiReceiveOwner {
 public:
  void note_used_up() override { ++used_up; }
  int used_up = 0;
};

}  // namespace

TEST_CASE("a send that is done at once writes a completion and counts") {
  Reporting one;
  Operation* const operation = one.operations.take(one.send());
  REQUIRE(operation != nullptr);

  CHECK(one.operations.settle(*operation, Status::kOk) == 0);

  const auto completion = read(one.queue);
  REQUIRE(completion);
  CHECK(completion->op_context == &one.context);
  CHECK(completion->flags == (FI_SEND | FI_TAGGED));
  CHECK(one.counter.successes() == 1);
  CHECK_FALSE(one.operations.any_using_memory_of(one.lane));
}

TEST_CASE("a send that is pending completes when its request is done, and not before") {
  Reporting one;
  Operation* const operation = one.operations.take(one.send());
  REQUIRE(operation != nullptr);
  CHECK(one.operations.settle(*operation, Status::kPending) == 0);
  CHECK_FALSE(read(one.queue));
  CHECK(one.operations.any_using_memory_of(one.lane));
  CHECK(one.operations.any_counted_by(one.counter));

  Reporting::finish(*operation);

  CHECK(read(one.queue));
  CHECK(one.counter.successes() == 1);
  CHECK_FALSE(one.operations.any_counted_by(one.counter));
}

TEST_CASE("a send from a bounce buffer completes with the copy, and not again with the ACK") {
  Reporting one;
  Operation* const operation = one.operations.take(one.send());
  REQUIRE(operation != nullptr);
  REQUIRE(one.operations.take_bounce_buffer(*operation) != nullptr);

  CHECK(one.operations.settle(*operation, Status::kPending) == 0);

  CHECK(read(one.queue));
  CHECK(one.counter.successes() == 1);
  CHECK_FALSE(one.operations.any_using_memory_of(one.lane));
  Reporting::finish(*operation);
  CHECK_FALSE(read(one.queue));
  CHECK(one.counter.successes() == 1);
}

TEST_CASE("bounce buffers are limited, and one is reused after its send was acknowledged") {
  Reporting one;
  Operation* first = nullptr;
  Operation* last = nullptr;
  int lent = 0;
  for (;;) {
    last = one.operations.take(one.send());
    REQUIRE(last != nullptr);
    if (one.operations.take_bounce_buffer(*last) == nullptr) break;
    if (first == nullptr) first = last;
    REQUIRE(one.operations.settle(*last, Status::kPending) == 0);
    ++lent;
  }
  CHECK(lent == 4);

  Reporting::finish(*first);

  CHECK(one.operations.take_bounce_buffer(*last) != nullptr);
}

TEST_CASE("a selective queue reports success only of operations with FI_COMPLETION") {
  Reporting one;
  one.lane.bindings.selective_sends = true;
  one.operations.settle(*one.operations.take(one.send()), Status::kOk);
  CHECK_FALSE(read(one.queue));
  CHECK(one.counter.successes() == 1);

  one.operations.settle(*one.operations.take(one.send(FI_COMPLETION)), Status::kOk);

  CHECK(read(one.queue));
}

TEST_CASE("an inject counts, but writes no completion") {
  Reporting one;
  SendCall call = one.send(FI_INJECT);
  call.silent = true;
  one.operations.settle(*one.operations.take(call), Status::kOk);
  CHECK_FALSE(read(one.queue));
  CHECK(one.counter.successes() == 1);
}

TEST_CASE("a call that the context refuses returns the error and reports nothing") {
  Reporting one;
  Operation* const operation = one.operations.take(one.send());
  REQUIRE(one.operations.take_bounce_buffer(*operation) != nullptr);

  CHECK(one.operations.settle(*operation, Status::kBusy) == -FI_EAGAIN);

  CHECK_FALSE(read(one.queue));
  CHECK(one.counter.successes() + one.counter.failures() == 0);
  CHECK(one.operations.take(one.send()) == operation);
  CHECK(operation->bounce == nullptr);
}

TEST_CASE("an endpoint that is closing reports nothing of what finishes then") {
  Reporting one;
  Operation* const operation = one.operations.take(one.send());
  one.operations.settle(*operation, Status::kPending);
  one.operations.stop_reporting();

  Reporting::finish(*operation);

  CHECK_FALSE(read(one.queue));
  CHECK(one.counter.successes() == 0);
}

TEST_CASE("the last message of a multi-receive buffer gives it back and tells its owner") {
  Reporting one;
  one.lane.bindings.selective_receives = true;
  std::byte bytes[32];
  const iovec segment{bytes, sizeof bytes};
  ReceiveCall call = one.receive();
  call.segments = &segment;
  call.count = 1;
  Owner owner;
  MultiReceiveBuffer buffer(call, sizeof bytes + 1);  // no room for a second message
  buffer.owner = &owner;
  buffer.in_flight = 1;
  Operation* const operation = one.operations.take(call);
  operation->multi_receive = &buffer;

  one.operations.settle(*operation, Status::kOk);

  const auto completion = read(one.queue);
  REQUIRE(completion);  // although the queue is selective
  CHECK((completion->flags & FI_MULTI_RECV) != 0);
  CHECK(completion->buf == bytes);
  CHECK(buffer.used_up);
  CHECK(buffer.returned);
  CHECK(owner.used_up == 1);
  CHECK(one.operations.is_refill_due());
}

TEST_CASE("a message that leaves room in a multi-receive buffer does not give it back") {
  Reporting one;
  std::byte bytes[32];
  const iovec segment{bytes, sizeof bytes};
  ReceiveCall call = one.receive();
  call.segments = &segment;
  call.count = 1;
  MultiReceiveBuffer buffer(call, 1);
  buffer.in_flight = 1;
  Operation* const operation = one.operations.take(call);
  operation->multi_receive = &buffer;

  one.operations.settle(*operation, Status::kOk);

  const auto completion = read(one.queue);
  REQUIRE(completion);
  CHECK((completion->flags & FI_MULTI_RECV) == 0);
  CHECK_FALSE(buffer.used_up);
  CHECK(one.operations.is_refill_due());
}

TEST_CASE("a call that is never started is an error entry and counts as a failure") {
  Reporting one;
  ReceiveCall call = one.receive();
  call.tag = 42;

  report_failure(call, Status::kCancelled);

  const auto error = read_error(one.queue);
  REQUIRE(error);
  CHECK(error->op_context == &one.context);
  CHECK(error->err == FI_ECANCELED);
  CHECK(error->tag == 42);
  CHECK(one.counter.failures() == 1);
}

}  // namespace pullman::ofi::test
