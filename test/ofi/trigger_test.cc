// What begins when a counter has come so far: triggered operations (FI_TRIGGER) and deferred work.
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <cstdlib>

#include "pair.h"

namespace {

using namespace pullman::test;

constexpr std::uint64_t kCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_TRIGGER;

Owned<fid_cntr> counter_of(const Side& side) {
  fi_cntr_attr attributes{};
  fid_cntr* counter = nullptr;
  MUST(fi_cntr_open(side.domain.get(), &attributes, &counter, nullptr));
  return Owned<fid_cntr>(counter);
}

fi_triggered_context when(const Owned<fid_cntr>& counter, std::size_t threshold) {
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold = {counter.get(), threshold};
  return context;
}

// A message in one piece; `context` may be null.
struct Message {
  Message(void* bytes, std::size_t length, fi_addr_t peer, std::uint64_t tag, void* context)
      : piece{bytes, length} {
    asked.msg_iov = &piece;
    asked.iov_count = 1;
    asked.addr = peer;
    asked.tag = tag;
    asked.context = context;
  }

  iovec piece;
  fi_msg_tagged asked{};
};

// Until the counter says so, while the other side moves, too.
void wait_for(Pair& pair, const Owned<fid_cntr>& counter, std::uint64_t value) {
  for (const std::clock_t end = deadline(); fi_cntr_read(counter.get()) < value;) {
    pair.turn(1);
    if (std::clock() > end) throw std::runtime_error("the counter stands still");
  }
}

bool silent(Side& side) {
  Said said;
  return !side.look(said);
}

// Tags of the next messages that b receives into buffers of its own.
std::vector<std::uint64_t> tags_at_b(Pair& pair, std::size_t count) {
  std::vector<std::uint64_t> tags;
  for (std::size_t i = 0; i < count; ++i) {
    char byte = 0;
    MUST(fi_trecv(pair.b->endpoint.get(), &byte, 1, nullptr, pair.to_a, 0, ~0ULL, nullptr));
    tags.push_back(pair.next(*pair.b).entry.tag);
  }
  return tags;
}

// Memory of b that a reaches.
struct Lent {
  explicit Lent(Pair& pair, std::size_t size)
      : bytes(size),
        region(lend(pair.b->domain.get(), std::as_writable_bytes(std::span(bytes)), 7)) {}

  std::vector<char> bytes;
  Owned<fid_mr> region;
};

}  // namespace

TEST_CASE("a triggered send leaves when its counter has come so far, not before") {
  Pair pair({.caps = kCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 3);
  char bytes[] = "later";
  Message message(bytes, sizeof bytes, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  message.piece = {};  // the list is the application's again, the bytes are not
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

TEST_CASE("what a triggered operation waits for may have happened already") {
  Pair pair({.caps = kCaps});
  const auto counter = counter_of(*pair.a);
  MUST(fi_cntr_set(counter.get(), 9));
  auto context = when(counter, 9);
  char byte = 'x';
  Message message(&byte, 1, pair.to_b, 5, &context);
  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER));
  CHECK(pair.next(*pair.a).entry.op_context == &context);
  CHECK(tags_at_b(pair, 1) == std::vector<std::uint64_t>{5});
}

TEST_CASE("triggered operations begin in the order of their thresholds, then of their calls") {
  Pair pair({.caps = kCaps});
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
  Pair pair({.caps = kCaps});
  auto context = when(pair.b->received, 1);
  char answer = 'y';
  Message message(&answer, 1, pair.to_a, 2, &context);
  MUST(fi_tsendmsg(pair.b->endpoint.get(), &message.asked, FI_TRIGGER));
  char question = 'x', at_b = 0, at_a = 0;
  MUST(fi_trecv(pair.b->endpoint.get(), &at_b, 1, nullptr, pair.to_a, 1, 0, nullptr));
  MUST(fi_trecv(pair.a->endpoint.get(), &at_a, 1, nullptr, pair.to_b, 2, 0, nullptr));
  MUST(fi_tinject(pair.a->endpoint.get(), &question, 1, pair.to_b, 1));
  // b's program only reads a counter.
  for (const std::clock_t end = deadline(); at_a == 0 && std::clock() < end;) {
    fi_cntr_read(pair.b->received.get());
    fi_cq_read(pair.a->completions.get(), nullptr, 0);
  }
  CHECK(at_a == 'y');
  CHECK(at_b == 'x');
}

TEST_CASE("messages without tags, receives, writes, reads and atomics can be triggered") {
  Pair pair({.caps = kCaps});
  const auto at_a = counter_of(*pair.a);
  Lent lent(pair, 64);
  auto context = when(at_a, 1);
  const auto start = [&] { MUST(fi_cntr_add(at_a.get(), 1)); };

  SECTION("a message") {
    char bytes[3] = {'a', 'b', 'c'};
    iovec pieces[] = {{bytes, 1}, {bytes + 1, 2}};
    fi_msg message{};
    message.msg_iov = pieces;
    message.iov_count = 2;
    message.addr = pair.to_b;
    message.context = &context;
    message.data = 77;
    MUST(fi_sendmsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_REMOTE_CQ_DATA));
    pieces[0] = pieces[1] = {};
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
    // It is not posted yet: another one takes the message.
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
    iovec piece{bytes, sizeof bytes};
    fi_rma_iov place{8, sizeof bytes, 7};
    fi_msg_rma message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.context = &context;
    MUST(fi_writemsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_DELIVERY_COMPLETE));
    piece = {};
    place = {};
    pair.turn();
    CHECK(lent.bytes[8] == 0);
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(std::string(&lent.bytes[8]) == "written");
  }
  SECTION("a read") {
    lent.bytes[3] = 'q';
    char byte = 0;
    iovec piece{&byte, 1};
    fi_rma_iov place{3, 1, 7};
    fi_msg_rma message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.context = &context;
    MUST(fi_readmsg(pair.a->endpoint.get(), &message, FI_TRIGGER));
    pair.turn();
    CHECK(byte == 0);
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(byte == 'q');
  }
  SECTION("an atomic") {
    std::uint64_t operand = 5, before = 99;
    fi_ioc piece{&operand, 1}, result{&before, 1};
    fi_rma_ioc place{0, 1, 7};
    fi_msg_atomic message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT64;
    message.op = FI_SUM;
    message.context = &context;
    lent.bytes[0] = 3;
    MUST(fi_fetch_atomicmsg(pair.a->endpoint.get(), &message, &result, nullptr, 1, FI_TRIGGER));
    piece = result = {};
    pair.turn();
    CHECK(lent.bytes[0] == 3);
    operand = 4;  // read when it begins
    start();
    CHECK(pair.next(*pair.a).entry.op_context == &context);
    CHECK(before == 3);
    CHECK(lent.bytes[0] == 7);
  }
}

TEST_CASE("what a triggered operation injects is kept") {
  Pair pair({.caps = kCaps});
  const auto counter = counter_of(*pair.a);
  Lent lent(pair, 64);
  auto context = when(counter, 1);
  SECTION("a message, from several pieces") {
    char bytes[] = {'a', 'b'};
    iovec pieces[] = {{bytes, 1}, {bytes + 1, 1}};
    fi_msg_tagged message{};
    message.msg_iov = pieces;
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
    const fi_ioc pieces[] = {{&operands[0], 1}, {&operands[1], 1}};
    fi_rma_ioc place{0, 2, 7};
    fi_msg_atomic message{};
    message.msg_iov = pieces;
    message.iov_count = 2;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT64;
    message.op = FI_SUM;
    message.context = &context;
    MUST(fi_atomicmsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_INJECT));
    operands[0] = operands[1] = 50;
    MUST(fi_cntr_add(counter.get(), 1));
    pair.next(*pair.a);
    CHECK(lent.bytes[0] == 1);
    CHECK(lent.bytes[8] == 2);
  }
  SECTION("operands, but none of a read's") {
    std::uint64_t before = 0;
    const fi_ioc operand{nullptr, 1};
    fi_ioc result{&before, 1};
    fi_rma_ioc place{0, 1, 7};
    fi_msg_atomic message{};
    message.msg_iov = &operand;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT64;
    message.op = FI_ATOMIC_READ;
    message.context = &context;
    lent.bytes[0] = 4;
    MUST(fi_fetch_atomicmsg(pair.a->endpoint.get(), &message, &result, nullptr, 1,
                            FI_TRIGGER | FI_INJECT));
    MUST(fi_cntr_add(counter.get(), 1));
    CHECK_FALSE(pair.next(*pair.a).error);
    CHECK(before == 4);
  }
  SECTION("nothing of a read, which comes where it belongs") {
    char byte = 0;
    lent.bytes[3] = 'q';
    iovec piece{&byte, 1};
    fi_rma_iov place{3, 1, 7};
    fi_msg_rma message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.context = &context;
    MUST(fi_readmsg(pair.a->endpoint.get(), &message, FI_TRIGGER | FI_INJECT));
    MUST(fi_cntr_add(counter.get(), 1));
    CHECK_FALSE(pair.next(*pair.a).error);
    CHECK(byte == 'q');
  }
  SECTION("not more than an inject may have") {
    std::vector<char> bytes(1025);
    Message message(bytes.data(), bytes.size(), pair.to_b, 5, &context);
    CHECK(fi_tsendmsg(pair.a->endpoint.get(), &message.asked, FI_TRIGGER | FI_INJECT) ==
          -FI_EINVAL);
  }
}

TEST_CASE("all calls of an alias can be triggered") {
  Pair pair({.caps = kCaps});
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
  Pair pair({.caps = kCaps});
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
  Pair pair({.caps = kCaps});
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

TEST_CASE("triggered operations are refused where they mean nothing") {
  Pair pair({.caps = kCaps});
  const auto counter = counter_of(*pair.a);
  auto context = when(counter, 1);
  char byte = 'x';
  fid_ep* const endpoint = pair.a->endpoint.get();
  SECTION("an endpoint that was not asked to") {
    Pair plain;
    Message message(&byte, 1, plain.to_b, 5, &context);
    CHECK(fi_tsendmsg(plain.a->endpoint.get(), &message.asked, FI_TRIGGER) == -FI_EBADFLAGS);
  }
  SECTION("a context that says nothing") {
    Message message(&byte, 1, pair.to_b, 5, nullptr);
    CHECK(fi_tsendmsg(endpoint, &message.asked, FI_TRIGGER) == -FI_EINVAL);
  }
  SECTION("another processor's trigger") {
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
  SECTION("too many pieces") {
    std::vector<iovec> pieces(17, {&byte, 1});
    fi_msg_tagged message{};
    message.msg_iov = pieces.data();
    message.iov_count = pieces.size();
    message.addr = pair.to_b;
    message.context = &context;
    CHECK(fi_tsendmsg(endpoint, &message, FI_TRIGGER) == -FI_EINVAL);
    CHECK(fi_trecvmsg(endpoint, &message, FI_TRIGGER) == -FI_EINVAL);
  }
  SECTION("a look") {
    Message message(&byte, 1, pair.to_b, 5, &context);
    CHECK(fi_trecvmsg(endpoint, &message.asked, FI_TRIGGER | FI_PEEK) == -FI_ENOSYS);
  }
}

TEST_CASE("an endpoint takes with it what it has not begun, and a counter stays for that long") {
  Pair pair({.caps = kCaps});
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

TEST_CASE("deferred work is counted where it says, and nowhere else") {
  Pair pair({.caps = kCaps});
  const auto trigger = counter_of(*pair.a);
  auto done = counter_of(*pair.a);
  char bytes[] = "work";
  fi_op_tagged operation{};
  iovec piece{bytes, sizeof bytes};
  operation.ep = pair.a->endpoint.get();
  operation.msg.msg_iov = &piece;
  operation.msg.iov_count = 1;
  operation.msg.addr = pair.to_b;
  operation.msg.tag = 5;
  operation.msg.context = &operation;
  fi_deferred_work work{};
  work.threshold = 2;
  work.triggering_cntr = trigger.get();
  work.completion_cntr = done.get();
  work.op_type = FI_OP_TSEND;
  work.op.tagged = &operation;
  fid* const domain = &pair.a->domain->fid;
  char received[sizeof bytes] = {};
  MUST(fi_trecv(pair.b->endpoint.get(), received, sizeof received, nullptr, pair.to_a, 5, 0,
                nullptr));

  SECTION("begins when successes and failures together reach the threshold") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_cntr_add(trigger.get(), 1));
    pair.turn();
    CHECK(received[0] == 0);
    MUST(fi_cntr_adderr(trigger.get(), 1));
    pair.next(*pair.b);
    CHECK(std::string(received) == "work");
    wait_for(pair, done, 1);
    CHECK(silent(*pair.a));
    CHECK(fi_cntr_readerr(done.get()) == 0);
  }
  SECTION("completes in the queue if it says so") {
    operation.flags = FI_COMPLETION;
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_cntr_add(trigger.get(), 2));
    CHECK(pair.next(*pair.a).entry.op_context == &operation);
    wait_for(pair, done, 1);
  }
  SECTION("that fails is counted as that") {
    operation.msg.addr = 4711;
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_cntr_add(trigger.get(), 2));
    CHECK(fi_cntr_readerr(done.get()) == 1);
    CHECK(silent(*pair.a));
  }
  SECTION("can be taken back") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_CANCEL_WORK, &work));
    CHECK(fi_control(domain, FI_CANCEL_WORK, &work) == -FI_ENOENT);
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.turn();
    CHECK(received[0] == 0);
    CHECK(fi_cntr_read(done.get()) == 0);
  }
  SECTION("is flushed, all or what waits for one counter") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_FLUSH_WORK, done.get()));
    CHECK(fi_close(&done->fid) == -FI_EBUSY);  // it has not gone
    MUST(fi_control(domain, FI_FLUSH_WORK, trigger.get()));
    CHECK(fi_control(domain, FI_CANCEL_WORK, &work) == -FI_ENOENT);
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_FLUSH_WORK, nullptr));
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.turn();
    CHECK(received[0] == 0);
  }
  SECTION("lets go of its counters when it is done") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    CHECK(fi_close(&done->fid) == -FI_EBUSY);
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.next(*pair.b);
    wait_for(pair, done, 1);
    CHECK(fi_close(&done.release()->fid) == 0);
  }
  SECTION("must be whole, of this domain, and something it can do") {
    const auto foreign = counter_of(*pair.b);
    const fi_deferred_work good = work;
    const auto refused = [&](int why) {
      CHECK(fi_control(domain, FI_QUEUE_WORK, &work) == why);
      work = good;
    };
    work.triggering_cntr = nullptr;
    refused(-FI_EINVAL);
    work.triggering_cntr = foreign.get();
    refused(-FI_EINVAL);
    work.completion_cntr = foreign.get();
    refused(-FI_EINVAL);
    work.op.tagged = nullptr;
    refused(-FI_EINVAL);
    work.op_type = static_cast<fi_op_type>(FI_OP_CNTR_ADD + 1);
    refused(-FI_ENOSYS);
    operation.ep = pair.b->endpoint.get();
    refused(-FI_EINVAL);
    operation.ep = nullptr;
    refused(-FI_EINVAL);
    operation.ep = pair.a->endpoint.get();
    operation.flags = FI_INJECT;
    piece.iov_len = std::size_t{1} << 40;  // not looked at
    refused(-FI_EINVAL);
    operation.flags = 0;
    operation.msg.iov_count = std::size_t{1} << 20;
    refused(-FI_EINVAL);
    operation.msg.iov_count = 1;
    operation.msg.msg_iov = nullptr;
    refused(-FI_EINVAL);
    fi_op_rma write{};
    write.ep = pair.a->endpoint.get();
    write.msg.rma_iov_count = 1;
    work.op_type = FI_OP_WRITE;
    work.op.rma = &write;
    refused(-FI_EINVAL);
    fi_op_atomic atomic{};
    fi_rma_ioc place{0, 1, 7};
    fi_ioc operand{bytes, std::size_t{1} << 40};
    atomic.ep = pair.a->endpoint.get();
    atomic.msg.rma_iov = &place;
    atomic.msg.rma_iov_count = 1;
    atomic.msg.msg_iov = &operand;
    atomic.msg.iov_count = 1;
    atomic.msg.datatype = FI_UINT64;
    atomic.msg.op = FI_SUM;
    atomic.flags = FI_INJECT;
    work.op_type = FI_OP_ATOMIC;
    work.op.atomic = &atomic;
    refused(-FI_EINVAL);
    operand.count = 1;
    atomic.msg.op = FI_CSWAP;  // compares with nothing
    work.op_type = FI_OP_ATOMIC;
    work.op.atomic = &atomic;
    refused(-FI_ENOSYS);
    CHECK(fi_control(domain, FI_QUEUE_WORK, nullptr) == -FI_EINVAL);
    CHECK(fi_control(domain, FI_FLUSH_WORK, foreign.get()) == -FI_EINVAL);
    CHECK(fi_control(domain, FI_BACKLOG, nullptr) == -FI_ENOSYS);
  }
}

TEST_CASE("work that is under way keeps its counter, whatever else counted there") {
  Pair pair({.caps = kCaps | FI_RMA_EVENT});
  const auto trigger = counter_of(*pair.a);
  auto done = counter_of(*pair.a);
  std::array<std::byte, 8> bytes{};
  auto region = lend(pair.a->domain.get(), bytes, 9);
  MUST(fi_mr_bind(region.get(), &done->fid, FI_REMOTE_WRITE));
  char received = 0;
  iovec piece{&received, 1};
  fi_op_tagged operation{};
  operation.ep = pair.a->endpoint.get();
  operation.msg.msg_iov = &piece;
  operation.msg.iov_count = 1;
  operation.msg.addr = pair.to_b;
  fi_deferred_work work{};
  work.triggering_cntr = trigger.get();
  work.completion_cntr = done.get();
  work.op_type = FI_OP_TRECV;
  work.op.tagged = &operation;
  MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &work));
  CHECK(fi_close(&done->fid) == -FI_EBUSY);
  region.reset();
  CHECK(fi_close(&done->fid) == -FI_EBUSY);
  const char byte = 'z';
  MUST(fi_tinject(pair.b->endpoint.get(), &byte, 1, pair.to_a, 0));
  wait_for(pair, done, 1);
  CHECK(received == 'z');
  CHECK(fi_close(&done.release()->fid) == 0);
}

TEST_CASE("a deferred receive waits behind a multi-receive buffer, and is counted where it says") {
  Pair pair({.caps = kCaps | FI_MULTI_RECV});
  const auto trigger = counter_of(*pair.a);
  const auto done = counter_of(*pair.a);
  std::array<char, 64> shared{};
  iovec room{shared.data(), shared.size()};
  fi_msg buffer{};
  buffer.msg_iov = &room;
  buffer.iov_count = 1;
  buffer.addr = FI_ADDR_UNSPEC;
  MUST(fi_recvmsg(pair.a->endpoint.get(), &buffer, FI_MULTI_RECV));
  char received = 0;
  iovec piece{&received, 1};
  fi_op_msg operation{};
  operation.ep = pair.a->endpoint.get();
  operation.msg.msg_iov = &piece;
  operation.msg.iov_count = 1;
  operation.msg.addr = FI_ADDR_UNSPEC;
  fi_deferred_work work{};
  work.triggering_cntr = trigger.get();
  work.completion_cntr = done.get();
  work.op_type = FI_OP_RECV;
  work.op.msg = &operation;
  MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &work));
  // Nothing of the same domain waits with it.
  fi_op_cntr adds{trigger.get(), 1};
  fi_deferred_work adding{};
  adding.triggering_cntr = trigger.get();
  adding.op_type = FI_OP_CNTR_ADD;
  adding.op.cntr = &adds;
  MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &adding));
  CHECK(fi_cntr_read(trigger.get()) == 1);
  const char byte = 'm';
  MUST(fi_inject(pair.b->endpoint.get(), &byte, 1, pair.to_a));
  // What is left of the buffer is too little for another message.
  CHECK((pair.next(*pair.a).entry.flags & FI_MULTI_RECV) != 0);
  CHECK(shared[0] == 'm');
  const char next = 'n';
  MUST(fi_inject(pair.b->endpoint.get(), &next, 1, pair.to_a));
  wait_for(pair, done, 1);
  CHECK(received == 'n');
  CHECK(silent(*pair.a));
}

TEST_CASE("a counter that is closed leaves the others of its wait set what they wait for") {
  setenv("FI_PULLMAN_PATIENCE", "60000", 1);  // the domains' own threads would help
  Pair pair({.caps = kCaps});
  unsetenv("FI_PULLMAN_PATIENCE");
  fi_wait_attr by_descriptor{};
  by_descriptor.wait_obj = FI_WAIT_FD;
  fid_wait* opened = nullptr;
  MUST(fi_wait_open(pair.fabric.get(), &by_descriptor, &opened));
  const Owned<fid_wait> set(opened);
  int descriptor = -1;
  MUST(fi_control(&set->fid, FI_GETWAIT, &descriptor));
  struct Receive {
    char byte = 0;
    iovec piece{&byte, 1};
    Owned<fid_cntr> done;
    fi_op_tagged operation{};
    fi_deferred_work work{};
  };
  const auto trigger = counter_of(*pair.a);
  std::array<Receive, 2> receives;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    Receive& one = receives[i];
    fi_cntr_attr attributes{};
    attributes.wait_obj = FI_WAIT_SET;
    attributes.wait_set = set.get();
    fid_cntr* counter = nullptr;
    MUST(fi_cntr_open(pair.a->domain.get(), &attributes, &counter, nullptr));
    one.done.reset(counter);
    one.operation.ep = pair.a->endpoint.get();
    one.operation.msg.msg_iov = &one.piece;
    one.operation.msg.iov_count = 1;
    one.operation.msg.addr = pair.to_b;
    one.operation.msg.tag = i;
    one.work.triggering_cntr = trigger.get();
    one.work.completion_cntr = counter;
    one.work.op_type = FI_OP_TRECV;
    one.work.op.tagged = &one.operation;
    MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &one.work));
  }
  const char byte = 'x';
  MUST(fi_tinject(pair.b->endpoint.get(), &byte, 1, pair.to_a, 0));
  wait_for(pair, receives[0].done, 1);
  CHECK(fi_close(&receives[0].done.release()->fid) == 0);
  CHECK(fi_cntr_read(receives[1].done.get()) == 0);
  MUST(fi_tinject(pair.b->endpoint.get(), &byte, 1, pair.to_a, 1));
  pollfd readable{.fd = descriptor, .events = POLLIN, .revents = 0};
  for (int i = 0; i < 1000 && poll(&readable, 1, 10) == 0; ++i) {
    fi_cq_read(pair.b->completions.get(), nullptr, 0);
  }
  CHECK((readable.revents & POLLIN) != 0);
  wait_for(pair, receives[1].done, 1);
}

TEST_CASE("deferred work does every operation") {
  Pair pair({.caps = kCaps});
  const auto trigger = counter_of(*pair.a);
  const auto done = counter_of(*pair.a);
  Lent lent(pair, 64);
  fi_deferred_work work{};
  work.threshold = 1;
  work.triggering_cntr = trigger.get();
  work.completion_cntr = done.get();
  const auto go = [&] {
    MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &work));
    pair.turn();
    CHECK(fi_cntr_read(done.get()) == 0);
    MUST(fi_cntr_add(trigger.get(), 1));
  };
  char byte = 'w';
  iovec piece{&byte, 1};

  SECTION("send and receive") {
    fi_op_msg operation{};
    operation.ep = pair.a->endpoint.get();
    operation.msg.msg_iov = &piece;
    operation.msg.iov_count = 1;
    operation.msg.addr = pair.to_b;
    work.op.msg = &operation;
    char other = 0;
    SECTION("send") {
      work.op_type = FI_OP_SEND;
      MUST(fi_recv(pair.b->endpoint.get(), &other, 1, nullptr, pair.to_a, nullptr));
      go();
      pair.next(*pair.b);
      CHECK(other == 'w');
    }
    SECTION("receive") {
      work.op_type = FI_OP_RECV;
      other = 'o';
      go();
      MUST(fi_inject(pair.b->endpoint.get(), &other, 1, pair.to_a));
    }
    wait_for(pair, done, 1);
    CHECK(byte == (work.op_type == FI_OP_RECV ? 'o' : 'w'));
    CHECK(fi_cntr_read(pair.a->received.get()) == 0);
  }
  SECTION("tagged receive") {
    fi_op_tagged operation{};
    operation.ep = pair.a->endpoint.get();
    operation.msg.msg_iov = &piece;
    operation.msg.iov_count = 1;
    operation.msg.addr = pair.to_b;
    operation.msg.tag = 8;
    work.op_type = FI_OP_TRECV;
    work.op.tagged = &operation;
    go();
    const char other = 't';
    MUST(fi_tinject(pair.b->endpoint.get(), &other, 1, pair.to_a, 8));
    wait_for(pair, done, 1);
    CHECK(byte == 't');
  }
  SECTION("write and read") {
    fi_rma_iov place{2, 1, 7};
    fi_op_rma operation{};
    operation.ep = pair.a->endpoint.get();
    operation.msg.msg_iov = &piece;
    operation.msg.iov_count = 1;
    operation.msg.addr = pair.to_b;
    operation.msg.rma_iov = &place;
    operation.msg.rma_iov_count = 1;
    work.op.rma = &operation;
    lent.bytes[2] = 'r';
    work.op_type = GENERATE(FI_OP_WRITE, FI_OP_READ);
    go();
    wait_for(pair, done, 1);
    CHECK(byte == lent.bytes[2]);
    CHECK(byte == (work.op_type == FI_OP_READ ? 'r' : 'w'));
  }
  SECTION("atomics") {
    std::uint8_t operand = 5, compare = 3, before = 0;
    fi_ioc operands{&operand, 1}, compares{&compare, 1}, results{&before, 1};
    fi_rma_ioc place{0, 1, 7};
    fi_msg_atomic message{};
    message.msg_iov = &operands;
    message.iov_count = 1;
    message.addr = pair.to_b;
    message.rma_iov = &place;
    message.rma_iov_count = 1;
    message.datatype = FI_UINT8;
    message.op = FI_SUM;
    fi_op_atomic write{pair.a->endpoint.get(), message, 0};
    fi_op_fetch_atomic fetch{pair.a->endpoint.get(), message, {&results, nullptr, 1}, 0};
    message.op = FI_CSWAP;
    fi_op_compare_atomic swap{
        pair.a->endpoint.get(), message, {&results, nullptr, 1}, {&compares, nullptr, 1}, 0};
    lent.bytes[0] = 3;
    work.op_type = GENERATE(FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, FI_OP_COMPARE_ATOMIC);
    if (work.op_type == FI_OP_ATOMIC) work.op.atomic = &write;
    if (work.op_type == FI_OP_FETCH_ATOMIC) work.op.fetch_atomic = &fetch;
    if (work.op_type == FI_OP_COMPARE_ATOMIC) work.op.compare_atomic = &swap;
    go();
    wait_for(pair, done, 1);
    CHECK(lent.bytes[0] == (work.op_type == FI_OP_COMPARE_ATOMIC ? 5 : 8));
    CHECK(before == (work.op_type == FI_OP_ATOMIC ? 0 : 3));
  }
}

TEST_CASE("deferred work sets and adds to counters, and so starts more") {
  Pair pair({.caps = kCaps});
  const auto first = counter_of(*pair.a);
  const auto second = counter_of(*pair.a);
  const auto third = counter_of(*pair.a);
  fi_op_cntr sets{second.get(), 10}, adds{third.get(), 5};
  fi_deferred_work setting{}, adding{};
  setting.threshold = 1;
  setting.triggering_cntr = first.get();
  setting.op_type = FI_OP_CNTR_SET;
  setting.op.cntr = &sets;
  adding.threshold = 10;
  adding.triggering_cntr = second.get();
  adding.op_type = FI_OP_CNTR_ADD;
  adding.op.cntr = &adds;
  MUST(fi_cntr_set(third.get(), 2));
  fid* const domain = &pair.a->domain->fid;
  MUST(fi_control(domain, FI_QUEUE_WORK, &adding));
  MUST(fi_control(domain, FI_QUEUE_WORK, &setting));
  CHECK(fi_cntr_read(second.get()) == 0);
  MUST(fi_cntr_add(first.get(), 1));
  CHECK(fi_cntr_read(second.get()) == 10);
  CHECK(fi_cntr_read(third.get()) == 7);
  adding.completion_cntr = first.get();
  CHECK(fi_control(domain, FI_QUEUE_WORK, &adding) == -FI_EINVAL);
}

// As collectives do it: each message that arrives sends the next, without the program.
TEST_CASE("a chain of deferred work runs while the program waits for its end only") {
  Pair pair({.caps = kCaps});
  constexpr std::size_t kSteps = 8;
  struct Hop {
    char byte = 0;
    iovec piece{};
    fi_op_tagged receive{}, send{};
    fi_deferred_work receiving{}, sending{};
    Owned<fid_cntr> received, sent;
  };
  std::array<std::array<Hop, kSteps>, 2> hops;
  const auto prepare = [&](Side& side, fi_addr_t peer, std::array<Hop, kSteps>& own, int at) {
    for (std::size_t i = 0; i < kSteps; ++i) {
      Hop& hop = own[i];
      hop.received = counter_of(side);
      hop.sent = counter_of(side);
      hop.piece = {&hop.byte, 1};
      hop.receive.ep = hop.send.ep = side.endpoint.get();
      hop.receive.msg.msg_iov = hop.send.msg.msg_iov = &hop.piece;
      hop.receive.msg.iov_count = hop.send.msg.iov_count = 1;
      hop.receive.msg.addr = hop.send.msg.addr = peer;
      hop.receive.msg.tag = 2 * i + static_cast<std::size_t>(at);
      hop.send.msg.tag = hop.receive.msg.tag + 1;
      hop.receiving.triggering_cntr = hop.received.get();  // stands at 0: begins now
      hop.receiving.completion_cntr = hop.received.get();
      hop.receiving.op_type = FI_OP_TRECV;
      hop.receiving.op.tagged = &hop.receive;
      hop.sending.threshold = 1;
      hop.sending.triggering_cntr = hop.received.get();
      hop.sending.completion_cntr = hop.sent.get();
      hop.sending.op_type = FI_OP_TSEND;
      hop.sending.op.tagged = &hop.send;
      MUST(fi_control(&side.domain->fid, FI_QUEUE_WORK, &hop.receiving));
      MUST(fi_control(&side.domain->fid, FI_QUEUE_WORK, &hop.sending));
    }
  };
  prepare(*pair.a, pair.to_b, hops[0], 1);
  prepare(*pair.b, pair.to_a, hops[1], 0);
  const char first = 'c';
  MUST(fi_tinject(pair.a->endpoint.get(), &first, 1, pair.to_b, 0));
  const Owned<fid_cntr>& last = hops[0][kSteps - 1].received;
  for (const std::clock_t end = deadline(); fi_cntr_read(last.get()) == 0;) {
    fi_cntr_read(hops[1][kSteps - 1].sent.get());
    REQUIRE(std::clock() < end);
  }
  CHECK(hops[0][kSteps - 1].byte == 'c');
}
