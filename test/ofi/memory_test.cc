// Reading and writing memory of a peer through libfabric's calls.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kKey = 9;

// Side a reads and writes a region of b.
struct MemoryPair : Pair {
  explicit MemoryPair(std::size_t size, std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE)
      : Pair({.caps = FI_RMA | FI_TAGGED | FI_SOURCE}), there(content(size, 1)) {
    region = lend(b->domain.get(), std::as_writable_bytes(std::span(there)), kKey, access);
  }

  std::vector<char> there;
  Owned<fid_mr> region;
};

}  // namespace

TEST_CASE("a completed write is in the target's memory, and can be read back") {
  for (const std::size_t size : {1, 1000, 65536, 1 << 20}) {
    MemoryPair pair(size + 16);
    const auto before = pair.there;
    const auto bytes = content(size, 2);
    std::vector<char> read(size);

    MUST(fi_write(pair.a->endpoint.get(), bytes.data(), size, nullptr, pair.to_b, 8, kKey,
                  &op_contexts[0]));
    const Said written = pair.next(*pair.a);
    CHECK_FALSE(written.error);
    CHECK(written.entry.flags == (FI_RMA | FI_WRITE));
    CHECK(written.entry.op_context == &op_contexts[0]);
    CHECK(std::equal(bytes.begin(), bytes.end(), pair.there.begin() + 8));
    CHECK(std::equal(before.begin(), before.begin() + 8, pair.there.begin()));
    CHECK(std::equal(before.end() - 8, before.end(), pair.there.end() - 8));

    MUST(fi_read(pair.a->endpoint.get(), read.data(), size, nullptr, pair.to_b, 8, kKey,
                 &op_contexts[1]));
    const Said got = pair.next(*pair.a);
    CHECK(got.entry.flags == (FI_RMA | FI_READ));
    CHECK(got.entry.op_context == &op_contexts[1]);
    CHECK(read == bytes);
  }
}

TEST_CASE("writes gather several segments, and reads scatter to several") {
  MemoryPair pair(300);
  auto first = content(100, 2), second = content(200, 3);
  const std::array<iovec, 2> segments{{{first.data(), 100}, {second.data(), 200}}};

  MUST(fi_writev(pair.a->endpoint.get(), segments.data(), nullptr, 2, pair.to_b, 0, kKey, nullptr));
  CHECK_FALSE(pair.next(*pair.a).error);
  const auto first_before = first, second_before = second;
  std::fill(first.begin(), first.end(), '\0');
  std::fill(second.begin(), second.end(), '\0');
  MUST(fi_readv(pair.a->endpoint.get(), segments.data(), nullptr, 2, pair.to_b, 0, kKey, nullptr));
  CHECK_FALSE(pair.next(*pair.a).error);

  CHECK(first == first_before);
  CHECK(second == second_before);
}

TEST_CASE("a write with immediate data completes at the target after its bytes are there") {
  MemoryPair pair(100);
  const auto bytes = content(100, 2);
  MUST(fi_writedata(pair.a->endpoint.get(), bytes.data(), 100, nullptr, 0x123456789, pair.to_b, 0,
                    kKey, nullptr));
  MUST(fi_inject_writedata(pair.a->endpoint.get(), bytes.data(), 50, 77, pair.to_b, 0, kKey));

  const Said first = pair.next(*pair.b);
  CHECK(first.entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
  CHECK(first.entry.data == 0x123456789);
  CHECK(first.entry.len == 100);
  CHECK(first.source == pair.to_a);
  CHECK(pair.next(*pair.b).entry.data == 77);
  CHECK(pair.there == bytes);  // the second write may arrive during this check
}

TEST_CASE("the buffer of an injected write may change at once, and it writes no completion") {
  MemoryPair pair(64);
  auto bytes = content(64, 2);
  const auto before = bytes;
  MUST(fi_inject_write(pair.a->endpoint.get(), bytes.data(), 64, pair.to_b, 0, kKey));
  std::fill(bytes.begin(), bytes.end(), 'x');

  MUST(fi_read(pair.a->endpoint.get(), bytes.data(), 64, nullptr, pair.to_b, 0, kKey,
               &op_contexts[0]));

  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);
  CHECK(bytes == before);
}

TEST_CASE("a region for reads cannot be written, and no access reaches beyond its end") {
  MemoryPair pair(64, FI_REMOTE_READ);
  const auto before = pair.there;
  auto bytes = content(64, 2);
  MUST(fi_write(pair.a->endpoint.get(), bytes.data(), 64, nullptr, pair.to_b, 0, kKey,
                &op_contexts[0]));
  MUST(fi_read(pair.a->endpoint.get(), bytes.data(), 64, nullptr, pair.to_b, 1, kKey,
               &op_contexts[1]));

  for (int i = 0; i < 2; ++i) {
    const Said said = pair.next(*pair.a);
    CHECK(said.error);
    CHECK(said.entry.err == FI_EACCES);
    CHECK(said.entry.op_context == &op_contexts[i]);
  }
  CHECK(pair.there == before);
}

TEST_CASE("accesses by peers count at the endpoint, and those to a region at the region") {
  Pair pair({.caps = FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_TAGGED});
  std::vector<char> there(64), other(64);
  const auto other_region =
      lend(pair.b->domain.get(), std::as_writable_bytes(std::span(other)), kKey + 1);
  fi_cntr_attr counting{};
  fid_cntr* opened = nullptr;
  MUST(fi_cntr_open(pair.b->domain.get(), &counting, &opened, nullptr));
  const Owned<fid_cntr> counter(opened);
  {
    const auto region = lend(pair.b->domain.get(), std::as_writable_bytes(std::span(there)), kKey);
    MUST(fi_mr_bind(region.get(), &counter->fid, FI_REMOTE_WRITE));
    fid_ep* endpoint = pair.a->endpoint.get();
    const auto bytes = content(65, 2);
    const std::uint64_t one = 1;
    std::array<std::uint64_t, 2> read{};
    int refused = 0;

    MUST(fi_write(endpoint, bytes.data(), 64, nullptr, pair.to_b, 0, kKey, nullptr));
    MUST(fi_write(endpoint, bytes.data(), 64, nullptr, pair.to_b, 0, kKey + 1, nullptr));
    MUST(fi_read(endpoint, &read[0], 8, nullptr, pair.to_b, 0, kKey, nullptr));
    MUST(fi_atomic(endpoint, &one, 1, nullptr, pair.to_b, 0, kKey, FI_UINT64, FI_SUM, nullptr));
    MUST(fi_fetch_atomic(endpoint, &one, 1, nullptr, &read[1], nullptr, pair.to_b, 0, kKey,
                         FI_UINT64, FI_SUM, nullptr));
    MUST(fi_write(endpoint, bytes.data(), 65, nullptr, pair.to_b, 0, kKey, &refused));
    for (int i = 0; i < 6; ++i) {  // in any order, as packets may be lost
      const Said said = pair.next(*pair.a);
      CHECK(said.error == (said.entry.op_context == &refused));
    }

    CHECK(fi_cntr_read(pair.b->remote_writes.get()) == 3);
    CHECK(fi_cntr_read(pair.b->remote_reads.get()) == 2);
    CHECK(fi_cntr_read(counter.get()) == 2);
    CHECK(fi_close(&counter->fid) == -FI_EBUSY);  // the region still holds it
  }
}

// One counter for all arrivals, as in fabtests' rma_bw: a read or a write is no message.
TEST_CASE("without FI_RMA_EVENT a peer's write counts only if it has immediate data") {
  Pair pair({.caps = FI_MSG | FI_RMA, .counted = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE});
  std::vector<char> there(64), bytes = content(64, 2), got(64);
  const auto region = lend(pair.b->domain.get(), std::as_writable_bytes(std::span(there)), kKey);
  fid_ep* from = pair.a->endpoint.get();

  MUST(fi_write(from, bytes.data(), 64, nullptr, pair.to_b, 0, kKey, nullptr));
  MUST(fi_read(from, got.data(), 64, nullptr, pair.to_b, 0, kKey, nullptr));
  for (int i = 0; i < 2; ++i) CHECK_FALSE(pair.next(*pair.a).error);
  CHECK(fi_cntr_read(pair.b->received.get()) == 0);

  MUST(fi_recv(pair.b->endpoint.get(), got.data(), 64, nullptr, FI_ADDR_UNSPEC, nullptr));
  MUST(fi_send(from, bytes.data(), 64, nullptr, pair.to_b, nullptr));
  CHECK_FALSE(pair.next(*pair.b).error);
  CHECK(fi_cntr_read(pair.b->received.get()) == 1);

  MUST(fi_writedata(from, bytes.data(), 64, nullptr, 5, pair.to_b, 0, kKey, nullptr));
  CHECK(pair.next(*pair.b).entry.data == 5);
  CHECK(fi_cntr_read(pair.b->received.get()) == 2);
}

TEST_CASE("the message calls of reads and writes accept flags") {
  MemoryPair pair(64);
  auto bytes = content(64, 2);
  const iovec piece{bytes.data(), 64};
  const fi_rma_iov place{0, 64, kKey};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = pair.to_b;
  message.rma_iov = &place;
  message.rma_iov_count = 1;
  message.data = 5;
  message.context = &op_contexts[0];

  MUST(fi_writemsg(pair.a->endpoint.get(), &message, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE));
  CHECK(pair.next(*pair.b).entry.data == 5);
  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);
  MUST(fi_writemsg(pair.a->endpoint.get(), &message, FI_INJECT | FI_COMPLETION));
  CHECK(pair.next(*pair.a).entry.flags == (FI_RMA | FI_WRITE));
  MUST(fi_readmsg(pair.a->endpoint.get(), &message, FI_COMPLETION));
  CHECK(pair.next(*pair.a).entry.flags == (FI_RMA | FI_READ));
  message.rma_iov_count = 2;
  CHECK(fi_readmsg(pair.a->endpoint.get(), &message, 0) == -FI_EINVAL);
}

TEST_CASE(
    "regions registered before and after the endpoint can be accessed until they are closed") {
  MemoryPair pair(64);
  std::vector<char> later(64, 'x'), bytes(64);
  {
    const auto region = lend(pair.b->domain.get(), std::as_writable_bytes(std::span(later)), 10);
    MUST(fi_read(pair.a->endpoint.get(), bytes.data(), 64, nullptr, pair.to_b, 0, 10, nullptr));
    CHECK_FALSE(pair.next(*pair.a).error);
    CHECK(bytes == later);
  }
  MUST(fi_read(pair.a->endpoint.get(), bytes.data(), 64, nullptr, pair.to_b, 0, 10, nullptr));
  CHECK(pair.next(*pair.a).entry.err == FI_EACCES);
}

}  // namespace pullman::test
