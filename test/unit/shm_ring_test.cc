#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <vector>

#include "base/random.h"
#include "shm/ring.h"

namespace pullman::shm {
namespace {

constexpr std::size_t kCapacity = 4096;

// Memory that is zero, as fresh pages are.
struct Shared {
  alignas(kLineBytes) std::array<std::byte, ring_bytes(kCapacity)> bytes{};
};

std::vector<std::byte> content(std::size_t length, unsigned salt) {
  std::vector<std::byte> bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 31 + salt);
  return bytes;
}

struct Ring {
  bool write(const std::vector<std::byte>& record) {
    std::byte* place = writer.reserve(record.size());
    if (place == nullptr) return false;
    if (!record.empty()) std::memcpy(place, record.data(), record.size());
    writer.commit();
    return true;
  }
  std::optional<std::vector<std::byte>> read() {
    const auto record = reader.front();
    if (!record) return std::nullopt;
    std::vector<std::byte> copy(record->begin(), record->end());
    reader.pop();
    return copy;
  }
  // The header that the reader looks at next.
  std::uint64_t& next_head() {
    const std::size_t at = kLineBytes + (writer.done() & (kCapacity - 1));
    return *reinterpret_cast<std::uint64_t*>(shared.bytes.data() + at);
  }

  Shared shared;
  RingWriter writer{shared.bytes};
  RingReader reader{shared.bytes};
};

}  // namespace

TEST_CASE("an empty ring has no record") {
  Ring ring;
  CHECK_FALSE(ring.reader.front());
  CHECK_FALSE(ring.reader.is_corrupt());
}

TEST_CASE("a record is not seen before it is committed") {
  Ring ring;
  std::byte* place = ring.writer.reserve(8);
  REQUIRE(place != nullptr);
  std::memset(place, 0xff, 8);
  CHECK_FALSE(ring.reader.front());
  ring.writer.commit();
  CHECK(ring.read() == std::vector<std::byte>(8, std::byte{0xff}));
  CHECK_FALSE(ring.reader.front());
}

TEST_CASE("a record's mark comes with it") {
  Ring ring;
  for (const bool marked : {false, true, false}) {
    REQUIRE(ring.writer.reserve(8) != nullptr);
    ring.writer.commit(marked);
    REQUIRE(ring.reader.front());
    CHECK(ring.reader.front()->size() == 8);
    CHECK(ring.reader.is_marked() == marked);
    ring.reader.pop();
  }
}

TEST_CASE("a place that was reserved and not committed is given again") {
  Ring ring;
  std::byte* const first = ring.writer.reserve(100);
  CHECK(ring.writer.reserve(8) == first);
  ring.writer.commit();
  CHECK(ring.read()->size() == 8);
}

TEST_CASE("records of any length come whole and in order, through many laps") {
  Ring ring;
  Random random(1);
  std::deque<std::vector<std::byte>> written;
  for (unsigned i = 0; i < 100'000; ++i) {
    const std::size_t most = random.below(4) == 0 ? ring.writer.max_record() : 60;
    const auto record = content(random.below(most + 1), i);
    if (ring.write(record)) written.push_back(record);
    while (!written.empty() && (random.below(3) == 0 || written.size() > 40)) {
      REQUIRE(ring.read() == written.front());
      written.pop_front();
    }
  }
  while (!written.empty()) {
    REQUIRE(ring.read() == written.front());
    written.pop_front();
  }
  CHECK_FALSE(ring.reader.front());
  CHECK_FALSE(ring.reader.is_corrupt());
}

TEST_CASE("a full ring takes no record until the reader has made room") {
  Ring ring;
  std::size_t count = 0;
  while (ring.write(content(56, 0))) ++count;
  CHECK(count == kCapacity / 64 - 1);  // and the header behind the last one
  CHECK_FALSE(ring.write(content(56, 0)));
  ring.read();
  CHECK(ring.write(content(56, 0)));
  CHECK_FALSE(ring.write(content(56, 0)));
}

TEST_CASE("the longest record has room in an empty ring, wherever the ring is") {
  Ring ring;
  for (std::size_t i = 0; i < 1000; ++i) {
    REQUIRE(ring.write(content(8 * (i % 16), 1)));
    REQUIRE(ring.read());
    REQUIRE(ring.write(content(ring.writer.max_record(), 2)));
    REQUIRE(ring.read() == content(ring.writer.max_record(), 2));
  }
}

TEST_CASE("a writer is told how far the reader has come") {
  Ring ring;
  ring.write(content(10, 1));
  const std::uint64_t first = ring.writer.position();
  ring.write(content(10, 2));
  CHECK(ring.writer.done() < first);
  ring.read();
  CHECK(ring.writer.done() == first);
  ring.read();
  CHECK(ring.writer.done() == ring.writer.position());
}

TEST_CASE("a header that no writer would have written ends the ring") {
  Ring ring;
  for (int i = 0; i < 3; ++i) ring.write(content(40, 1));
  ring.read();
  const std::uint64_t good = ring.next_head();
  const std::uint64_t position = good >> 32 << 32;

  SECTION("of another position") {
    ring.next_head() = good + (std::uint64_t{1} << 32);
  }
  SECTION("too long") {
    ring.next_head() = position | (ring.writer.max_record() + 2);
  }
  SECTION("longer than what is left of the lap") {
    ring.read();
    ring.read();
    while (ring.writer.position() < kCapacity - 200) {
      ring.write(content(40, 1));
      ring.read();
    }
    ring.write(content(40, 1));
    ring.next_head() = (ring.next_head() >> 32 << 32) | 301;
  }
  SECTION("a skip to another skip") {
    ring.next_head() = position | 0xffff'ffff;
    const std::uint64_t lap = kCapacity / 8;
    auto& first = *reinterpret_cast<std::uint64_t*>(ring.shared.bytes.data() + kLineBytes);
    first = lap << 32 | 0xffff'ffff;
  }
  SECTION("of no length") {
    ring.next_head() = position;
  }
  if (ring.next_head() != 0) {
    CHECK_FALSE(ring.reader.front());
    CHECK(ring.reader.is_corrupt());
  }
  CHECK_FALSE(ring.reader.front());
}

TEST_CASE("a reader that claims what cannot be gains nothing") {
  Ring ring;
  ring.write(content(40, 1));
  auto& read = *reinterpret_cast<std::uint64_t*>(ring.shared.bytes.data());
  read = GENERATE(std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{49});

  std::size_t count = 1;
  while (ring.write(content(40, 1))) ++count;

  CHECK(count <= kCapacity / 48);
}

}  // namespace pullman::shm
