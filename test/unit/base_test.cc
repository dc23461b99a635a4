// lib/base: sequence arithmetic, bitmap, pool.
#include <catch2/catch.hpp>

#include "base/bitmap.h"
#include "base/pool.h"
#include "base/sequence.h"

namespace pullman {

TEST_CASE("a number is expanded to the nearest one with its low bits, wire.md 2.5") {
  constexpr std::uint64_t kWrap = std::uint64_t{7} << 32;
  CHECK(expand(5, kWrap + 3) == kWrap + 5);                   // expected soon
  CHECK(expand(1, kWrap + 3) == kWrap + 1);                   // past
  CHECK(expand(3, kWrap + 3) == kWrap + 3);                   // itself
  CHECK(expand(2, kWrap - 3) == kWrap + 2);                   // beyond the wrap
  CHECK(expand(0xFFFFFFFE, kWrap + 1) == kWrap - 2);          // before the wrap
  CHECK(expand(low32(kWrap + 4095), kWrap) == kWrap + 4095);  // a window ahead
  CHECK(expand(low32(kWrap - 4095), kWrap) == kWrap - 4095);  // a window behind
}

TEST_CASE("a sliding bitmap keeps the bits of a window that starts anywhere") {
  for (std::uint64_t start : {std::uint64_t{0}, std::uint64_t{63}, (std::uint64_t{1} << 32) - 10,
                              std::uint64_t{65535}, std::uint64_t{4096 * 3 - 1}}) {
    SlidingBitmap<4096> bitmap;

    for (std::uint64_t n = start; n < start + 4096; n += 3) bitmap.set(n);

    for (std::uint64_t n = start; n < start + 4096; ++n) {
      REQUIRE(bitmap.test(n) == ((n - start) % 3 == 0));
    }
  }
}

TEST_CASE("popping a run clears it and returns the first number not set") {
  SlidingBitmap<128> bitmap;
  for (std::uint64_t n = 60; n < 60 + 127; ++n) bitmap.set(n);

  CHECK(bitmap.pop_run(59) == 59);
  CHECK(bitmap.pop_run(60) == 60 + 127);
  for (std::uint64_t n = 60; n < 60 + 128; ++n) CHECK_FALSE(bitmap.test(n));
}

TEST_CASE("a pool hands out as many objects as it has, and the last one given back first") {
  Pool<int> pool(2);

  int* a = pool.take();
  int* b = pool.take();

  REQUIRE(a != nullptr);
  REQUIRE(b != nullptr);
  CHECK(pool.take() == nullptr);
  CHECK(pool.in_use() == 2);
  pool.give_back(a);
  CHECK(pool.take() == a);
  pool.give_back(a);
  pool.give_back(b);
  CHECK(pool.in_use() == 0);
}

}  // namespace pullman
