// Deferred work (FI_QUEUE_WORK): operations that a domain begins when a counter reaches a
// threshold.
#include <poll.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include <cstdlib>

#include "triggers.h"

namespace pullman::test {
namespace {

// An fi_op_msg or fi_op_tagged of one segment.
template <typename Operation>
Operation operation_on(const Owned<fid_ep>& endpoint, const iovec& piece, fi_addr_t peer) {
  Operation operation{};
  operation.ep = endpoint.get();
  operation.msg.msg_iov = &piece;
  operation.msg.iov_count = 1;
  operation.msg.addr = peer;
  return operation;
}

}  // namespace

TEST_CASE("deferred work counts in its completion counter only, unless it asks for a completion") {
  Pair pair({.caps = kTriggerCaps});
  const auto trigger = counter_of(*pair.a);
  auto done = counter_of(*pair.a);
  char bytes[] = "work";
  iovec piece{bytes, sizeof bytes};
  auto operation = operation_on<fi_op_tagged>(pair.a->endpoint, piece, pair.to_b);
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
  SECTION("completes in the queue if it asks for that") {
    operation.flags = FI_COMPLETION;
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_cntr_add(trigger.get(), 2));
    CHECK(pair.next(*pair.a).entry.op_context == &operation);
    wait_for(pair, done, 1);
  }
  SECTION("is counted as an error if it fails") {
    operation.msg.addr = 4711;
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_cntr_add(trigger.get(), 2));
    CHECK(fi_cntr_readerr(done.get()) == 1);
    CHECK(silent(*pair.a));
  }
  SECTION("can be cancelled before it begins") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_CANCEL_WORK, &work));
    CHECK(fi_control(domain, FI_CANCEL_WORK, &work) == -FI_ENOENT);
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.turn();
    CHECK(received[0] == 0);
    CHECK(fi_cntr_read(done.get()) == 0);
  }
  SECTION("is flushed, all of it or what waits for one counter") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_FLUSH_WORK, done.get()));
    CHECK(fi_close(&done->fid) == -FI_EBUSY);  // the work still holds it
    MUST(fi_control(domain, FI_FLUSH_WORK, trigger.get()));
    CHECK(fi_control(domain, FI_CANCEL_WORK, &work) == -FI_ENOENT);
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    MUST(fi_control(domain, FI_FLUSH_WORK, nullptr));
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.turn();
    CHECK(received[0] == 0);
  }
  SECTION("releases its counters when it is done") {
    MUST(fi_control(domain, FI_QUEUE_WORK, &work));
    CHECK(fi_close(&done->fid) == -FI_EBUSY);
    MUST(fi_cntr_add(trigger.get(), 2));
    pair.next(*pair.b);
    wait_for(pair, done, 1);
    CHECK(fi_close(&done.release()->fid) == 0);
  }
  SECTION("is refused if it is incomplete, of another domain, or not supported") {
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
    piece.iov_len = std::size_t{1} << 40;  // not read
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
    fi_ioc operand{bytes, std::size_t{1} << 40};
    const AtomicAccess access(FI_UINT64, FI_SUM, {&operand, 1}, pair.to_b, nullptr);
    fi_op_atomic atomic{pair.a->endpoint.get(), access.asked, FI_INJECT};
    work.op_type = FI_OP_ATOMIC;
    work.op.atomic = &atomic;
    refused(-FI_EINVAL);
    operand.count = 1;
    atomic.msg.op = FI_CSWAP;  // nothing to compare with
    work.op_type = FI_OP_ATOMIC;
    work.op.atomic = &atomic;
    refused(-FI_ENOSYS);
    CHECK(fi_control(domain, FI_QUEUE_WORK, nullptr) == -FI_EINVAL);
    CHECK(fi_control(domain, FI_FLUSH_WORK, foreign.get()) == -FI_EINVAL);
    CHECK(fi_control(domain, FI_BACKLOG, nullptr) == -FI_ENOSYS);
  }
}

TEST_CASE("outstanding work keeps its counter open, whatever else was bound to it") {
  Pair pair({.caps = kTriggerCaps | FI_RMA_EVENT});
  const auto trigger = counter_of(*pair.a);
  auto done = counter_of(*pair.a);
  std::array<std::byte, 8> bytes{};
  auto region = lend(pair.a->domain.get(), bytes, 9);
  MUST(fi_mr_bind(region.get(), &done->fid, FI_REMOTE_WRITE));
  char received = 0;
  iovec piece{&received, 1};
  auto operation = operation_on<fi_op_tagged>(pair.a->endpoint, piece, pair.to_b);
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

TEST_CASE(
    "a deferred receive waits behind a multi-receive buffer, and counts in its completion "
    "counter") {
  Pair pair({.caps = kTriggerCaps | FI_MULTI_RECV});
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
  auto operation = operation_on<fi_op_msg>(pair.a->endpoint, piece, FI_ADDR_UNSPEC);
  fi_deferred_work work{};
  work.triggering_cntr = trigger.get();
  work.completion_cntr = done.get();
  work.op_type = FI_OP_RECV;
  work.op.msg = &operation;
  MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &work));
  // Other work of the domain does not wait with it.
  fi_op_cntr adds{trigger.get(), 1};
  fi_deferred_work adding{};
  adding.triggering_cntr = trigger.get();
  adding.op_type = FI_OP_CNTR_ADD;
  adding.op.cntr = &adds;
  MUST(fi_control(&pair.a->domain->fid, FI_QUEUE_WORK, &adding));
  CHECK(fi_cntr_read(trigger.get()) == 1);
  const char byte = 'm';
  MUST(fi_inject(pair.b->endpoint.get(), &byte, 1, pair.to_a));
  // The rest of the buffer is too short for another message.
  CHECK((pair.next(*pair.a).entry.flags & FI_MULTI_RECV) != 0);
  CHECK(shared[0] == 'm');
  const char next = 'n';
  MUST(fi_inject(pair.b->endpoint.get(), &next, 1, pair.to_a));
  wait_for(pair, done, 1);
  CHECK(received == 'n');
  CHECK(silent(*pair.a));
}

TEST_CASE(
    "closing a counter leaves the other counters of its wait set connected to their endpoints") {
  const auto patient = patient_pair({.caps = kTriggerCaps});  // whose domains' threads would help
  Pair& pair = *patient;
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
    one.operation = operation_on<fi_op_tagged>(pair.a->endpoint, one.piece, pair.to_b);
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

TEST_CASE("every operation can be deferred work") {
  Pair pair({.caps = kTriggerCaps});
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
    auto operation = operation_on<fi_op_msg>(pair.a->endpoint, piece, pair.to_b);
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
    auto operation = operation_on<fi_op_tagged>(pair.a->endpoint, piece, pair.to_b);
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
    const Access access(&byte, 1, pair.to_b, 2, nullptr);
    fi_op_rma operation{pair.a->endpoint.get(), access.asked, 0};
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
    const AtomicAccess access(FI_UINT8, FI_SUM, {&operands, 1}, pair.to_b, nullptr);
    fi_msg_atomic message = access.asked;
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

TEST_CASE("deferred work that sets or adds to a counter starts the work waiting for that") {
  Pair pair({.caps = kTriggerCaps});
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

// As collectives do: each message that arrives triggers the next send, without the program.
TEST_CASE("a chain of deferred work runs while the program only waits for its last counter") {
  Pair pair({.caps = kTriggerCaps});
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
      hop.receiving.triggering_cntr = hop.received.get();  // the counter is 0: begins at once
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

}  // namespace pullman::test
