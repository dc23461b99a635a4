// Atomic operations through libfabric's calls.
#include <rdma/fi_atomic.h>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kKey = 5;

// Side a operates on a region of b: four numbers, 10 to 13.
struct AtomicPair : Pair {
  AtomicPair() : Pair({.caps = FI_ATOMIC | FI_TAGGED}) {}

  std::array<std::uint64_t, 4> there{10, 11, 12, 13};
  Owned<fid_mr> region = lend(b->domain.get(), std::as_writable_bytes(std::span(there)), kKey);
};

}  // namespace

TEST_CASE("an atomic changes the target's memory and completes as a write") {
  AtomicPair pair;
  const std::array<std::uint64_t, 2> operands{5, 6};

  MUST(fi_atomic(pair.a->endpoint.get(), operands.data(), 2, nullptr, pair.to_b, 8, kKey, FI_UINT64,
                 FI_SUM, &op_contexts[0]));

  const Said said = pair.next(*pair.a);
  CHECK_FALSE(said.error);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK(said.entry.flags == (FI_ATOMIC | FI_WRITE));
  CHECK(pair.there == std::array<std::uint64_t, 4>{10, 16, 18, 13});
}

TEST_CASE("a fetching atomic returns the value before it, and a read needs no operand") {
  AtomicPair pair;
  const std::uint64_t operand = 5;
  std::array<std::uint64_t, 4> before{};

  MUST(fi_fetch_atomic(pair.a->endpoint.get(), &operand, 1, nullptr, before.data(), nullptr,
                       pair.to_b, 0, kKey, FI_UINT64, FI_SUM, &op_contexts[0]));
  CHECK(pair.next(*pair.a).entry.flags == (FI_ATOMIC | FI_READ));
  CHECK(before[0] == 10);
  MUST(fi_fetch_atomic(pair.a->endpoint.get(), nullptr, 4, nullptr, before.data(), nullptr,
                       pair.to_b, 0, kKey, FI_UINT64, FI_ATOMIC_READ, &op_contexts[1]));
  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[1]);

  CHECK(before == std::array<std::uint64_t, 4>{15, 11, 12, 13});
  CHECK(pair.there == before);
}

TEST_CASE("compare and swap changes only a value that is as expected") {
  AtomicPair pair;
  const std::array<std::uint64_t, 2> operands{100, 101}, expected{10, 0};
  std::array<std::uint64_t, 2> before{};

  MUST(fi_compare_atomic(pair.a->endpoint.get(), operands.data(), 2, nullptr, expected.data(),
                         nullptr, before.data(), nullptr, pair.to_b, 0, kKey, FI_UINT64, FI_CSWAP,
                         &op_contexts[0]));
  CHECK_FALSE(pair.next(*pair.a).error);

  CHECK(before == std::array<std::uint64_t, 2>{10, 11});
  CHECK(pair.there == std::array<std::uint64_t, 4>{100, 11, 12, 13});
}

TEST_CASE("operands, compares and results may lie in several segments") {
  AtomicPair pair;
  std::uint64_t first = 100;
  std::array<std::uint64_t, 2> rest{101, 102};
  std::array<std::uint64_t, 3> expected{10, 11, 12};
  std::array<std::uint64_t, 2> before{};
  std::uint64_t last = 0;
  const std::array<fi_ioc, 2> operands{{{&first, 1}, {rest.data(), 2}}};
  const fi_ioc compares{expected.data(), 3};
  std::array<fi_ioc, 2> results{{{before.data(), 2}, {&last, 1}}};
  const fi_rma_ioc place{0, 3, kKey};
  fi_msg_atomic message{};
  message.msg_iov = operands.data();
  message.iov_count = 2;
  message.addr = pair.to_b;
  message.rma_iov = &place;
  message.rma_iov_count = 1;
  message.datatype = FI_UINT64;
  message.op = FI_CSWAP;

  MUST(fi_compare_atomicmsg(pair.a->endpoint.get(), &message, &compares, nullptr, 1, results.data(),
                            nullptr, 2, FI_COMPLETION));
  CHECK_FALSE(pair.next(*pair.a).error);
  CHECK(before == std::array<std::uint64_t, 2>{10, 11});
  CHECK(last == 12);
  CHECK(pair.there == std::array<std::uint64_t, 4>{100, 101, 102, 13});
  pair.turn(1);  // takes the lock under which b's thread wrote this memory

  message.op = FI_SUM;
  MUST(fi_fetch_atomicmsg(pair.a->endpoint.get(), &message, results.data(), nullptr, 2, 0));
  CHECK_FALSE(pair.next(*pair.a).error);
  CHECK(last == 102);
  MUST(fi_atomicmsg(pair.a->endpoint.get(), &message, 0));
  CHECK_FALSE(pair.next(*pair.a).error);
  CHECK(pair.there == std::array<std::uint64_t, 4>{300, 303, 306, 13});
}

TEST_CASE("injected atomics are each done once, and write no completion") {
  AtomicPair pair;
  for (int i = 0; i < 1000; ++i) {
    std::uint64_t one = 1;
    ssize_t result = 0;
    while ((result = fi_inject_atomic(pair.a->endpoint.get(), &one, 1, pair.to_b, 0, kKey,
                                      FI_UINT64, FI_SUM)) == -FI_EAGAIN) {
      pair.turn(1);
    }
    MUST(result);
    one = 1000;
  }
  std::uint64_t now = 0;

  MUST(fi_fetch_atomic(pair.a->endpoint.get(), nullptr, 1, nullptr, &now, nullptr, pair.to_b, 0,
                       kKey, FI_UINT64, FI_ATOMIC_READ, &op_contexts[0]));

  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);
  CHECK(now == 1010);
}

TEST_CASE("an atomic on memory without access is an error entry") {
  AtomicPair pair;
  const std::uint64_t operand = 1;
  MUST(fi_atomic(pair.a->endpoint.get(), &operand, 1, nullptr, pair.to_b, 0, kKey + 1, FI_UINT64,
                 FI_SUM, &op_contexts[0]));
  MUST(fi_atomic(pair.a->endpoint.get(), &operand, 1, nullptr, pair.to_b, 32, kKey, FI_UINT64,
                 FI_SUM, &op_contexts[1]));

  for (int i = 0; i < 2; ++i) {
    const Said said = pair.next(*pair.a);
    CHECK(said.error);
    CHECK(said.entry.err == FI_EACCES);
    CHECK(said.entry.flags == (FI_ATOMIC | FI_WRITE));
    CHECK(said.entry.op_context == &op_contexts[i]);
  }
}

TEST_CASE("fi_query_atomic and the valid calls report the supported atomics and their counts") {
  AtomicPair pair;
  fid_ep* endpoint = pair.a->endpoint.get();
  std::size_t count = 0;

  CHECK(fi_atomicvalid(endpoint, FI_DOUBLE, FI_SUM, &count) == 0);
  CHECK(count == 256);
  CHECK(fi_fetch_atomicvalid(endpoint, FI_UINT8, FI_ATOMIC_READ, &count) == 0);
  CHECK(count == 2048);
  CHECK(fi_compare_atomicvalid(endpoint, FI_UINT64, FI_MSWAP, &count) == 0);
  CHECK(count == 128);
  fi_atomic_attr attributes{};
  CHECK(fi_query_atomic(pair.a->domain.get(), FI_INT32, FI_CSWAP, &attributes, FI_COMPARE_ATOMIC) ==
        0);
  CHECK(attributes.count == 256);
  CHECK(attributes.size == 4);

  CHECK(fi_atomicvalid(endpoint, FI_UINT64, FI_ATOMIC_READ, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_atomicvalid(endpoint, FI_UINT64, FI_CSWAP, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_compare_atomicvalid(endpoint, FI_UINT64, FI_SUM, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_fetch_atomicvalid(endpoint, FI_DOUBLE, FI_BXOR, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_atomicvalid(endpoint, static_cast<fi_datatype>(FI_DATATYPE_LAST), FI_SUM, &count) ==
        -FI_EOPNOTSUPP);
}

TEST_CASE("invalid atomics are refused at once") {
  AtomicPair pair;
  std::array<std::uint64_t, 2> numbers{};
  fid_ep* endpoint = pair.a->endpoint.get();
  CHECK(fi_atomic(endpoint, numbers.data(), 1, nullptr, pair.to_b, 0, kKey, FI_DOUBLE, FI_BOR,
                  nullptr) == -FI_EOPNOTSUPP);
  CHECK(fi_atomic(endpoint, numbers.data(), 0, nullptr, pair.to_b, 0, kKey, FI_UINT64, FI_SUM,
                  nullptr) == -FI_EINVAL);
  CHECK(fi_atomic(endpoint, numbers.data(), 257, nullptr, pair.to_b, 0, kKey, FI_UINT64, FI_SUM,
                  nullptr) == -FI_EINVAL);
  CHECK(fi_atomic(endpoint, numbers.data(), 1, nullptr, 99, 0, kKey, FI_UINT64, FI_SUM, nullptr) ==
        -FI_EINVAL);
  CHECK(fi_fetch_atomic(endpoint, numbers.data(), 1, nullptr, nullptr, nullptr, pair.to_b, 0, kKey,
                        FI_UINT64, FI_SUM, nullptr) == -FI_EINVAL);
  CHECK(fi_atomic(endpoint, nullptr, 1, nullptr, pair.to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr) ==
        -FI_EINVAL);
}

}  // namespace pullman::test
