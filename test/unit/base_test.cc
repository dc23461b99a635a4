// lib/base: sequence arithmetic, bitmap, pool, keyed random bits, short copies, reused memory.
#include <array>
#include <bit>
#include <catch2/catch.hpp>

#include "base/bitmap.h"
#include "base/keyed_random.h"
#include "base/pool.h"
#include "base/reused_memory.h"
#include "base/sequence.h"
#include "base/short_copy.h"

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

// RFC 8439, appendix A.1, test vectors 1 and 2: blocks 0 and 1 under the key of zeros.
TEST_CASE("keyed random bits are the keystream of ChaCha20, wire.md 2.4") {
  KeyedRandom random(KeyedRandom::key_from_seed(0));
  const auto word = [](std::array<unsigned char, 8> bytes) {
    return std::bit_cast<std::uint64_t>(bytes);
  };

  CHECK(random.next() == word({0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90}));
  CHECK(random.next() == word({0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28}));
  for (int i = 2; i < 8; ++i) random.next();
  CHECK(random.next() == word({0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a}));
}

TEST_CASE("another key gives other bits, the same key the same, however many are drawn") {
  KeyedRandom one(KeyedRandom::key_from_seed(1));
  KeyedRandom same(KeyedRandom::key_from_seed(1));
  KeyedRandom other(KeyedRandom::key_from_seed(2));

  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t drawn = one.next();
    REQUIRE(drawn == same.next());
    equal += drawn == other.next() ? 1 : 0;
  }
  CHECK(equal == 0);
}

TEST_CASE("a short copy copies as many bytes as it is told, and none beside them") {
  const std::size_t bytes = static_cast<std::size_t>(GENERATE(range(0, 40)));
  std::array<std::byte, 64> from;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  std::array<std::byte, 64> to{};

  copy_short(to.data() + 8, from.data(), bytes);

  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool copied = i >= 8 && i < 8 + bytes;
    CHECK(to[i] == (copied ? from[i - 8] : std::byte{0}));
  }
}

TEST_CASE("freed memory is not reused for a larger request or another alignment") {
  ReusedMemory reused;
  std::pmr::memory_resource& memory = reused.resource();
  void* const first = memory.allocate(64, 8);
  void* const second = memory.allocate(64, 8);
  CHECK(first != second);
  memory.deallocate(first, 64, 8);
  memory.deallocate(second, 64, 8);

  void* const larger = memory.allocate(128, 8);
  CHECK(larger != first);
  CHECK(larger != second);
  std::array<void*, 8> aligned{};
  for (void*& block : aligned) {
    memory.deallocate(memory.allocate(24, 8), 24, 8);
    block = memory.allocate(24, 64);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
  }
  for (void* block : aligned) memory.deallocate(block, 24, 64);
  memory.deallocate(larger, 128, 8);
}

}  // namespace pullman
