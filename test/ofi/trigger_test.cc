// Triggered operations (FI_TRIGGER): operations that begin when a counter reaches a threshold.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "triggers.h"

namespace pullman::test {

TEST_CASE("a triggered send begins when its counter reaches the threshold, not before") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 3);
  char bytes[] = "later";
  Message message(bytes, sizeof bytes, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  message.piece = {};  // the application may change the list, but not the bytes
  char received[sizeof bytes] = {};
  MUST(fi_trecv(pair.b->endpoint.get(), received, sizeof received, nullptr, pair.to_a, 5, 0,
                nullptr));
  MUST(fi_cntr_add(counter.get(), 2));
  MUST(fi_cntr_adderr(counter.get(), 1));
  pair.turn(200);
  CHECK(silent(*pair.a));
  CHECK(silent(*pair.b));
  bytes[0] = 'L';
  MUST(fi_cntr_add(counter.get(), 1));
  CHECK(pair.next(*pair.a).entry.op_context == &context);
  CHECK(pair.next(*pair.b).entry.len == sizeof bytes);
  CHECK(std::string(received) == "Later");
}

TEST_CASE("a triggered operation begins at once if its threshold has been reached") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  MUST(fi_cntr_set(counter.get(), 9));
  auto context = when(counter, 9);
  char byte = 'x';
  Message message(&byte, 1, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  CHECK(pair.next(*pair.a).entry.op_context == &context);
  CHECK(tags_at_b(pair, 1) == std::vector<std::uint64_t>{5});
}

TEST_CASE("triggered operations begin in the order of their thresholds, then of the calls") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  char byte = 'x';
  std::vector<fi_triggered_context> contexts;
  contexts.reserve(5);
  const auto add = [&](std::uint64_t tag, std::size_t threshold) {
    contexts.push_back(when(counter, threshold));
    Message message(&byte, 1, pair.to_b, tag, &contexts.back());
    MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  };
  add(30, 3);
  add(10, 1);
  add(31, 3);
  add(20, 2);
  add(40, 4);
  MUST(fi_cntr_set(counter.get(), 3));
  CHECK(tags_at_b(pair, 4) == std::vector<std::uint64_t>{10, 20, 30, 31});
  MUST(fi_cntr_set(counter.get(), 4));
  CHECK(tags_at_b(pair, 1) == std::vector<std::uint64_t>{40});
}

TEST_CASE("a message that arrives triggers its answer") {
  Pair pair({.caps = kTriggerCaps});
  auto context = when(pair.b->received, 1);
  char answer = 'y';
  Message message(&answer, 1, pair.to_a, 2, &context);
  MUST(fi_tsendmsg(pair.b->endpoint.get(), &message.asked, FI_TRIGGER));
  char question = 'x', at_b = 0, at_a = 0;
  MUST(fi_trecv(pair.b->endpoint.get(), &at_b, 1, nullptr, pair.to_a, 1, 0, nullptr));
  MUST(fi_trecv(pair.a->endpoint.get(), &at_a, 1, nullptr, pair.to_b, 2, 0, nullptr));
  MUST(fi_tinject(pair.a->endpoint.get(), &question, 1, pair.to_b, 1));
  // b's program only reads a counter.
  Said said;
  for (const std::clock_t end = deadline(); !pair.a->look(said) && std::clock() < end;) {
    fi_cntr_read(pair.b->received.get());
  }
  CHECK(at_a == 'y');
  fi_cq_read(pair.b->completions.get(), nullptr, 0);  // takes the lock of b's thread
  CHECK(at_b == 'x');
}

TEST_CASE("messages without tags, receives, writes, reads and atomics can be triggered") {
  Pair pair({.caps = kTriggerCaps});
  const auto at_a = counter_of(*pair.a);
  Lent lent(pair, 64);
  auto context = when(at_a, 1);
  const auto start = [&] { MUST(fi_cntr_add(at_a.get(), 1)); };

  SECTION("a message") {
    char bytes[3] = {'a', 'b', 'c'};
    iovec segments[] = {{bytes, 1}, {bytes + 1, 2}};
    fi_msg message{};
    message.msg_iov = segments;
    message.iov_count = 2;
    message.addr = pair.to_b;
    message.context = &context;
    message.data = 77;
    MUST(fi_sendmsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_REMOTE_CQ_DATA));
    segments[0] = segments[1] = {};
    char received[4] = {};
    MUST(fi_recv(pair.b->endpoint.get(), received, 3, nullptr, pair.to_a, nullptr));
    pair.turn();
    CHECK(received[0] == 0);
    start();
    const Said said = pair.next(*pair.b);
    CHECK(said.entry.data == 77);
    CHECK(std::string(received) == "abc");
  }
  SECTION("a receive") {
    char received = 0, byte = 'r', other = 0;
    Message message(&received, 1, pair.to_b, 5, &context);
    MUST(fi_trecvmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
    MUST(fi_tinject(pair.b->endpoint.get(), &byte, 1, pair.to_a, 5));
    // It is not posted yet: another receive takes the message.
    MUST(fi_trecv(pair.a->endpoint.get(), &other, 1, nullptr, pair.to_b, 5, 0, nullptr));
    pair.next(*pair.a);
    CHECK(other == 'r');
    start();
    MUST(fi_tinject(pair.b->endpoint.get(), &byte, 1, pair.to_a, 5));
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(received == 'r');
  }
  SECTION("a write") {
    char bytes[] = "written";
    Access access(bytes, sizeof bytes, pair.to_b, 8, &context);
    MUST(fi_writemsg(pair.a->endpoint.get(), &access.asked, FI_TRIGGER | FI_DELIVERY_COMPLETE));
    access.piece = {};
    access.place = {};
    pair.turn();
    CHECK(lent.bytes[8] == 0);
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(std::string(&lent.bytes[8]) == "written");
  }
  SECTION("a read") {
    lent.bytes[3] = 'q';
    char byte = 0;
    Access access(&byte, 1, pair.to_b, 3, &context);
    MUST(fi_readmsg(pair.a->endpoint.get(), &access.asked, FI_TRIGGER));
    pair.turn();
    CHECK(byte == 0);
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(byte == 'q');
  }
  SECTION("an atomic") {
    std::uint64_t operand = 5, before = 99;
    fi_ioc piece{&operand, 1}, result{&before, 1};
    AtomicAccess access(FI_UINT64, FI_SUM, {&piece, 1}, pair.to_b, &context);
    lent.bytes[0] = 3;
    MUST(
        fi_fetch_atomicmsg(pair.a->endpoint.get(), &access.asked, &result, nullptr, 1, FI_TRIGGER));
    piece = result = {};
    pair.turn();
    CHECK(lent.bytes[0] == 3);
    operand = 4;  // read when the operation begins
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(before == 3);
    CHECK(lent.bytes[0] == 7);
  }
}

TEST_CASE("the bytes of a triggered inject are copied") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  Lent lent(pair, 64);
  auto context = when(counter, 1);
  SECTION("a message of several segments") {
    char bytes[] = {'a', 'b'};
    iovec segments[] = {{bytes, 1}, {bytes + 1, 1}};
    fi_msg_tagged message{};
    message.msg_iov = segments;
    message.iov_count = 2;
    message.addr = pair.to_b;
    message.context = &context;
    MUST(fi_tsendmsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_INJECT));
    bytes[0] = bytes[1] = '-';
    MUST(fi_cntr_add(counter.get(), 1));
    char received[3] = {};
    MUST(fi_trecv(pair.b->endpoint.get(), received, 2, nullptr, pair.to_a, 0, 0, nullptr));
    pair.next(*pair.b);
    CHECK(std::string(received) == "ab");
  }
  SECTION("operands") {
    std::uint64_t operands[] = {1, 2};
    const fi_ioc segments[] = {{&operands[0], 1}, {&operands[1], 1}};
    AtomicAccess access(FI_UINT64, FI_SUM, segments, pair.to_b, &context);
    MUST(fi_atomicmsg(pair.a->endpoint.get(), &access.asked, FI_TRIGGER | FI_INJECT));
    operands[0] = operands[1] = 50;
    MUST(fi_cntr_add(counter.get(), 1));
    pair.next(*pair.a);
    CHECK(lent.bytes[0] == 1);
    CHECK(lent.bytes[8] == 2);
  }
  SECTION("operands, of which a read has none") {
    std::uint64_t before = 0;
    const fi_ioc operand{nullptr, 1};
    fi_ioc result{&before, 1};
    AtomicAccess access(FI_UINT64, FI_ATOMIC_READ, {&operand, 1}, pair.to_b, &context);
    lent.bytes[0] = 4;
    MUST(fi_fetch_atomicmsg(pair.a->endpoint.get(), &access.asked, &result, nullptr, 1,
                            FI_TRIGGER | FI_INJECT));
    MUST(fi_cntr_add(counter.get(), 1));
    CHECK_FALSE(pair.next(*pair.a).error);
    CHECK(before == 4);
  }
  SECTION("no bytes of a read, which go to the application's buffer") {
    char byte = 0;
    lent.bytes[3] = 'q';
    Access access(&byte, 1, pair.to_b, 3, &context);
    MUST(fi_readmsg(pair.a->endpoint.get(), &access.asked, FI_TRIGGER | FI_INJECT));
    MUST(fi_cntr_add(counter.get(), 1));
    CHECK_FALSE(pair.next(*pair.a).error);
    CHECK(byte == 'q');
  }
  SECTION("up to the inject size only") {
    std::vector<char> bytes(1025);
    Message message(bytes.data(), bytes.size(), pair.to_b, 5, &context);
    CHECK(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER | FI_INJECT) ==
          -FI_EINVAL);
  }
}

TEST_CASE("triggers work in all calls of an alias") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  Lent lent(pair, 64);
  auto sending = when(counter, 1), writing = when(counter, 1), adding = when(counter, 1);
  fid_ep* opened = nullptr;
  MUST(fi_ep_alias(pair.a->endpoint.get(), &opened, FI_TRANSMIT | FI_TRIGGER));
  const Owned<fid_ep> alias(opened);
  const char byte = 'x';
  const std::uint64_t one = 1;
  MUST(fi_tsend(alias.get(), &byte, 1, nullptr, pair.to_b, 6, &sending));
  MUST(fi_write(alias.get(), &byte, 1, nullptr, pair.to_b, 8, 7, &writing));
  MUST(fi_atomic(alias.get(), &one, 1, nullptr, pair.to_b, 0, 7, FI_UINT64, FI_SUM, &adding));
  pair.turn();
  CHECK(silent(*pair.a));
  MUST(fi_cntr_add(counter.get(), 1));
  for (int i = 0; i < 3; ++i) CHECK_FALSE(pair.next(*pair.a).error);
  CHECK(lent.bytes[0] == 1);
  CHECK(lent.bytes[8] == 'x');
  CHECK(tags_at_b(pair, 1) == std::vector<std::uint64_t>{6});
}

TEST_CASE("a triggered operation that cannot begin completes with an error") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 1);
  char byte = 'x';
  Message message(&byte, 1, 4711, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  CHECK(silent(*pair.a));
  MUST(fi_cntr_add(counter.get(), 1));
  const Said said = pair.next(*pair.a);
  CHECK(said.error);
  CHECK(said.entry.op_context == &context);
  CHECK(said.entry.flags == (FI_SEND | FI_TAGGED));
  CHECK(said.entry.err == FI_EINVAL);
}

TEST_CASE("a triggered operation that has not begun can be cancelled") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 1);
  auto stays = when(counter, 1);
  char byte = 'x';
  Message message(&byte, 1, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  Message other(&byte, 1, pair.to_b, 6, &stays);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &other.asked, FI_TRIGGER));
  for (int one_each = 0; one_each < 2; ++one_each) {
    MUST(fi_cancel(&pair.a->endpoint->fid, &context));
    const Said said = pair.next(*pair.a);
    CHECK(said.entry.op_context == &context);
    CHECK(said.entry.err == FI_ECANCELED);
    CHECK(silent(*pair.a));
  }
  CHECK(fi_cancel(&pair.a->endpoint->fid, &context) == -FI_ENOENT);
  MUST(fi_cntr_add(counter.get(), 1));
  CHECK(tags_at_b(pair, 1) == std::vector<std::uint64_t>{6});
}

TEST_CASE("triggered operations that could never begin are refused") {
  Pair pair({.caps = kTriggerCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 1);
  char byte = 'x';
  fid_ep* const endpoint = pair.a->endpoint.get();
  SECTION("an endpoint without FI_TRIGGER") {
    Pair plain;
    Message message(&byte, 1, plain.to_b, 5, &context);
    CHECK(fi_tsendmsg(plain.a->endpoint.get(), &message.asked, FI_TRIGGER) == -FI_EBADFLAGS);
  }
  SECTION("a context without a trigger") {
    Message message(&byte, 1, pair.to_b, 5, nullptr);
    CHECK(fi_tsendmsg(endpoint, &message.asked, FI_TRIGGER) == -FI_EINVAL);
  }
  SECTION("a trigger of another device") {
    context.event_type = FI_TRIGGER_XPU;
    Message message(&byte, 1, pair.to_b, 5, &context);
    CHECK(fi_tsendmsg(endpoint, &message.asked, FI_TRIGGER) == -FI_ENOSYS);
  }
  SECTION("a counter of another domain") {
    const auto foreign = counter_of(*pair.b);
    auto there = when(foreign, 1);
    Message message(&byte, 1, pair.to_b, 5, &there);
    CHECK(fi_tsendmsg(endpoint, &message.asked, FI_TRIGGER) == -FI_EINVAL);
  }
  SECTION("too many segments") {
    std::vector<iovec> segments(17, {&byte, 1});
    fi_msg_tagged message{};
    message.msg_iov = segments.data();
    message.iov_count = segments.size();
    message.addr = pair.to_b;
    message.context = &context;
    CHECK(fi_tsendmsg(endpoint, &message, FI_TRIGGER) == -FI_EINVAL);
    CHECK(fi_trecvmsg(endpoint, &message, FI_TRIGGER) == -FI_EINVAL);
  }
  SECTION("a peek") {
    Message message(&byte, 1, pair.to_b, 5, &context);
    CHECK(fi_trecvmsg(endpoint, &message.asked, FI_TRIGGER | FI_PEEK) == -FI_ENOSYS);
  }
}

TEST_CASE("closing an endpoint drops its triggered operations, which kept their counter open") {
  Pair pair({.caps = kTriggerCaps});
  auto counter = counter_of(*pair.a);
  auto context = when(counter, 1);
  char byte = 'x';
  Message message(&byte, 1, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  CHECK(fi_close(&counter->fid) == -FI_EBUSY);
  pair.a->endpoint.reset();
  MUST(fi_cntr_add(counter.get(), 1));
  CHECK(fi_close(&counter.release()->fid) == 0);
}

}  // namespace pullman::test
