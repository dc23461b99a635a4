#include <array>

#include "domain.h"
#include "ofi/endpoint/multi_receive.h"

namespace pullman::ofi::test {
namespace {

struct Posted {
  std::array<std::byte, 100> bytes;
  iovec segment{bytes.data(), bytes.size()};
  ReceiveCall call{.segments = &segment, .count = 1, .flags = FI_MULTI_RECV};
};

}  // namespace

TEST_CASE("a buffer is used up when less than the minimum is left, and not before") {
  Posted posted;
  MultiReceiveBuffer buffer(posted.call, 10);
  buffer.use(90, true);
  CHECK_FALSE(buffer.used_up);
  CHECK(buffer.at == posted.bytes.data() + 90);

  buffer.use(1, true);

  CHECK(buffer.used_up);
}

TEST_CASE("a buffer takes a message of any length and is used up by one that failed") {
  Posted posted;
  MultiReceiveBuffer truncated(posted.call, 10);
  truncated.use(1000, true);
  CHECK(truncated.left == 0);
  CHECK(truncated.used_up);

  MultiReceiveBuffer failed(posted.call, 10);
  failed.use(0, false);
  CHECK(failed.used_up);
}

TEST_CASE("with a minimum of no bytes a full buffer is used up") {
  Posted posted;
  MultiReceiveBuffer buffer(posted.call, 0);
  buffer.use(100, true);
  CHECK(buffer.used_up);
}

TEST_CASE(
    "receives behind a buffer wait in order, and keep the minimum from when they were posted") {
  Posted posted;
  int contexts[3] = {};
  MultiReceiveQueue queue;
  queue.begin(posted.call);
  queue.set_min_room(7);
  for (int& context : contexts) {
    ReceiveCall call = posted.call;
    call.context = &context;
    queue.append(call);
  }
  queue.set_min_room(9);
  ReceiveCall taken_back;
  REQUIRE(queue.withdraw(&contexts[1], taken_back));
  CHECK(taken_back.context == &contexts[1]);
  CHECK_FALSE(queue.withdraw(&contexts[1], taken_back));

  queue.end();
  REQUIRE(queue.any_waiting());
  CHECK(queue.first_waiting().context == &contexts[0]);
  queue.begin_first_waiting();
  queue.drop_first_waiting();

  CHECK(queue.active());
  CHECK(queue.buffer().min_room == 7);
  CHECK(queue.first_waiting().context == &contexts[2]);
}

TEST_CASE("a queue that is closed lets no further message begin") {
  Posted posted;
  MultiReceiveQueue queue;
  queue.begin(posted.call);
  queue.append(posted.call);

  queue.close();

  CHECK(queue.buffer().used_up);
  CHECK_FALSE(queue.any_waiting());
}

}  // namespace pullman::ofi::test
