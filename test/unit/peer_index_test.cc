// engine/peer_index.h and kept_address.h: how peers are found, in little memory.
#include "engine/peer/peer_index.h"

#include <catch2/catch.hpp>
#include <map>

#include "base/random.h"
#include "engine/peer/kept_address.h"

namespace pullman::engine {
namespace {

std::uint32_t find(const PeerIndex& index, std::uint64_t hash, std::uint32_t slot) {
  return index.find(hash, [slot](std::uint32_t other) { return other == slot; });
}
std::uint32_t find_any(const PeerIndex& index, std::uint64_t hash) {
  return index.find(hash, [](std::uint32_t) { return true; });
}

TEST_CASE("an empty index finds nothing, and nothing is removed from it") {
  PeerIndex index;
  CHECK(find_any(index, 7) == kNoSlot);
  index.remove(7, 1);
  CHECK(index.size() == 0);
}

TEST_CASE("of entries with one hash the right one is found, and removed") {
  PeerIndex index;
  for (std::uint32_t slot = 0; slot < 100; ++slot) index.add(7, slot);

  for (std::uint32_t slot = 0; slot < 100; slot += 2) index.remove(7, slot);

  CHECK(index.size() == 50);
  for (std::uint32_t slot = 0; slot < 100; ++slot) {
    CHECK(find(index, 7, slot) == (slot % 2 == 0 ? kNoSlot : slot));
  }
  CHECK(find_any(index, 8) == kNoSlot);
}

TEST_CASE("an index agrees with a map after any additions and removals") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    PeerIndex index;
    std::map<std::uint32_t, std::uint64_t> map;  // slot -> hash; few hashes, so many are equal
    for (int step = 0; step < 4000; ++step) {
      const auto slot = static_cast<std::uint32_t>(random.below(300));
      const auto known = map.find(slot);
      if (known != map.end()) {
        index.remove(known->second, slot);
        map.erase(known);
      } else {
        map[slot] = random.below(200);
        index.add(map[slot], slot);
      }
    }
    REQUIRE(index.size() == map.size());
    for (std::uint32_t slot = 0; slot < 300; ++slot) {
      const auto known = map.find(slot);
      const std::uint64_t hash = known == map.end() ? slot % 200 : known->second;
      REQUIRE(find(index, hash, slot) == (known == map.end() ? kNoSlot : slot));
    }
  }
}

TEST_CASE("an address that is kept compares as the original, of IP or of another fabric") {
  std::string why;
  std::string opaque = "hex:";
  for (int i = 0; i < 56; ++i) opaque += "a5";
  KeptAddress kept;
  for (const std::string& text : {std::string("10.0.0.1:7100"), opaque,
                                  std::string("[fe80::1%2]:7100"), std::string("hex:01")}) {
    const auto address = *nic::parse(text, 0, why);
    kept = address;
    CHECK(kept == address);
    CHECK(nic::to_string(kept) == text);
    CHECK_FALSE(kept == *nic::parse("10.0.0.2:7100", 0, why));
  }
  CHECK(sizeof(KeptAddress) == 24);
}

}  // namespace
}  // namespace pullman::engine
