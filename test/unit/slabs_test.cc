// Each packet's memory begins with a cache line.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "base/aligned_bytes.h"
#include "channel/packet.h"
#include "channel/run.h"
#include "nic/fabric/slab.h"
#include "nic/receive_slab.h"

namespace pullman {
namespace {

bool is_aligned(const std::byte* bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes) % kCacheLine == 0;
}

TEST_CASE("every packet of a pool begins a cache line, whatever its size") {
  const std::size_t large = GENERATE(576u, 816u, 1472u, 1477u, 8972u, 65507u);
  channel::PacketPool pool(200, large);

  std::vector<channel::Packet*> taken;
  for (const std::size_t bytes : {std::size_t{1}, large}) {
    for (int i = 0; i < 100; ++i) {
      taken.push_back(pool.take(bytes));
      REQUIRE(taken.back() != nullptr);
      CHECK(is_aligned(taken.back()->bytes));
      CHECK(taken.back()->capacity == (bytes == 1 ? channel::Packet::kSmallBytes : large));
    }
  }
  channel::Run* const run = pool.take_run(4);
  REQUIRE(run != nullptr);
  CHECK(is_aligned(run->bytes));

  pool.give_back(*run);
  for (channel::Packet* packet : taken) pool.give_back(*packet);
}

TEST_CASE("every receive buffer begins a cache line") {
  for (const std::size_t buffers : {1u, 5u, 64u}) {
    const nic::ReceiveSlab slab(buffers);
    for (std::size_t i = 0; i < buffers; ++i) {
      CHECK(is_aligned(slab.bytes(slab.peek(i))));
    }
  }
}

TEST_CASE("every slot for a provider begins a cache line") {
  for (const std::size_t bytes : {1u, 64u, 1473u, 9001u}) {
    nic::fabric::Slab slab({.slots = 7, .slot_bytes = bytes, .device = "test"});
    for (std::size_t i = 0; i < slab.slots(); ++i) CHECK(is_aligned(slab.slot(i)));
  }
}

}  // namespace
}  // namespace pullman
