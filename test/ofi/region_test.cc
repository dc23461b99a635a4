// Regions, the counters that count accesses to them, and the order in which both are closed.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kKey = 9;
constexpr std::uint64_t kRegionCaps = FI_RMA | FI_RMA_EVENT | FI_TAGGED;

Owned<fid_cntr> open_counter(fid_domain* domain) {
  fi_cntr_attr counting{};
  fid_cntr* opened = nullptr;
  MUST(fi_cntr_open(domain, &counting, &opened, nullptr));
  return Owned<fid_cntr>(opened);
}

// Side a writes to and reads from a region of b.
struct LendingPair : Pair {
  LendingPair() : Pair({.caps = kRegionCaps}), there(64) {}

  Owned<fid_mr> lend_all(std::uint64_t key) {
    return lend(b->domain.get(), std::as_writable_bytes(std::span(there)), key);
  }
  void write(std::uint64_t key) {
    MUST(fi_write(a->endpoint.get(), bytes.data(), bytes.size(), nullptr, to_b, 0, key, nullptr));
    CHECK_FALSE(next(*a).error);
  }
  void read(std::uint64_t key) {
    MUST(fi_read(a->endpoint.get(), bytes.data(), bytes.size(), nullptr, to_b, 0, key, nullptr));
    CHECK_FALSE(next(*a).error);
  }
  // Closes b's endpoint and opens another one.
  void replace_endpoint() {
    b->endpoint.reset();
    fid_ep* opened = nullptr;
    MUST(fi_endpoint(b->domain.get(), info.get(), &opened, nullptr));
    b->endpoint.reset(opened);
    MUST(fi_ep_bind(opened, &b->vector->fid, 0));
    MUST(fi_ep_bind(opened, &b->completions->fid, FI_TRANSMIT | FI_RECV));
    MUST(fi_enable(opened));
    to_b = a->insert(b->name());
  }

  std::vector<char> there;
  std::array<char, 8> bytes{};
};

}  // namespace

TEST_CASE("a region outlives an endpoint and a counter, and counts in the counter that is left") {
  LendingPair pair;
  const auto reads = open_counter(pair.b->domain.get());
  auto writes = open_counter(pair.b->domain.get());
  const auto region = pair.lend_all(kKey);
  MUST(fi_mr_bind(region.get(), &reads->fid, FI_REMOTE_READ));
  MUST(fi_mr_bind(region.get(), &writes->fid, FI_REMOTE_WRITE));
  for (int i = 0; i < 3; ++i) pair.read(kKey);
  pair.write(kKey);
  CHECK(fi_cntr_read(reads.get()) == 3);

  pair.b->endpoint.reset();
  writes.reset();
  // It probably has the closed counter's memory.
  const auto unbound = open_counter(pair.b->domain.get());
  for (std::uint64_t told = 4; told < 10; ++told) {
    pair.replace_endpoint();
    pair.write(kKey);
    pair.read(kKey);
    CHECK(fi_cntr_read(reads.get()) == told);
  }
  CHECK(fi_cntr_read(unbound.get()) == 0);
}

// Its endpoint waits for a message that is not received, and a's writes still reach it.
TEST_CASE(
    "memory is not written after its region was closed, even if an endpoint is still closing") {
  LendingPair pair;
  auto region = pair.lend_all(kKey);
  pair.write(kKey);
  const auto kept = content(10'000'000, 1);
  MUST(fi_tsend(pair.b->endpoint.get(), kept.data(), kept.size(), nullptr, pair.to_a, 1, nullptr));
  pair.turn();
  const std::jthread closer([&] { pair.b->endpoint.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));

  region.reset();
  std::fill(pair.there.begin(), pair.there.end(), '!');
  const auto begun = fi_write(pair.a->endpoint.get(), pair.bytes.data(), pair.bytes.size(), nullptr,
                              pair.to_b, 0, kKey, nullptr);
  if (begun == 0) {
    Said said;
    for (const std::clock_t end = deadline(); !pair.a->look(said) && std::clock() < end;) {
    }
    CHECK(said.error);
  } else {
    CHECK(begun == -FI_ECONNABORTED);  // b has already closed
  }
  CHECK(std::all_of(pair.there.begin(), pair.there.end(), [](char byte) { return byte == '!'; }));
}

TEST_CASE("a counter bound to a region later counts from then on") {
  LendingPair pair;
  const auto region = pair.lend_all(kKey);
  for (int i = 0; i < 3; ++i) pair.write(kKey);
  const auto writes = open_counter(pair.b->domain.get());
  MUST(fi_mr_bind(region.get(), &writes->fid, FI_REMOTE_WRITE));
  CHECK(fi_cntr_read(writes.get()) == 0);
  pair.write(kKey);
  CHECK(fi_cntr_read(writes.get()) == 1);
}

TEST_CASE("a counter can be closed after the last region bound to it, whatever else is open") {
  LendingPair pair;
  auto counter = open_counter(pair.b->domain.get());
  auto region = pair.lend_all(kKey), other = pair.lend_all(kKey + 1);
  MUST(fi_mr_bind(region.get(), &counter->fid, FI_REMOTE_WRITE));
  MUST(fi_mr_bind(other.get(), &counter->fid, FI_REMOTE_WRITE));

  region.reset();
  CHECK(fi_close(&counter->fid) == -FI_EBUSY);
  pair.write(kKey + 1);
  CHECK(fi_cntr_read(counter.get()) == 1);
  other.reset();

  CHECK(fi_close(&counter.release()->fid) == 0);
}

TEST_CASE(
    "a counter bound to an endpoint and a region stays bound to the endpoint without the region") {
  LendingPair pair;
  {
    const auto region = pair.lend_all(kKey);
    MUST(fi_mr_bind(region.get(), &pair.b->remote_reads->fid, FI_REMOTE_WRITE));
  }
  const auto region = pair.lend_all(kKey);

  pair.read(kKey);

  CHECK(fi_close(&pair.b->remote_reads->fid) == -FI_EBUSY);
  CHECK(fi_cntr_read(pair.b->remote_reads.get()) == 1);
}

TEST_CASE("each of many regions is written by its own key, and counts in its own counter") {
  constexpr std::size_t kRegions = 20;
  LendingPair pair;
  std::array<std::array<char, 8>, kRegions> there{};
  std::vector<Owned<fid_cntr>> counters;
  std::vector<Owned<fid_mr>> regions;
  for (std::size_t i = 0; i < kRegions; ++i) {
    counters.push_back(open_counter(pair.b->domain.get()));
    regions.push_back(
        lend(pair.b->domain.get(), std::as_writable_bytes(std::span(there[i])), kKey + i));
    MUST(fi_mr_bind(regions.back().get(), &counters.back()->fid, FI_REMOTE_WRITE));
  }

  for (std::size_t i = 0; i < kRegions; ++i) {
    pair.bytes.fill(static_cast<char>(i + 1));
    pair.write(kKey + i);
    while (fi_cntr_read(counters[i].get()) == 0) pair.turn(1);
  }

  for (std::size_t i = 0; i < kRegions; ++i) {
    CHECK(fi_cntr_read(counters[i].get()) == 1);
    CHECK(there[i][7] == static_cast<char>(i + 1));
  }
}

}  // namespace pullman::test
