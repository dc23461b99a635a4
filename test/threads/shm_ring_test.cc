// Both ends of a ring at the same time, for ThreadSanitizer to look at.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <thread>

#include "shm/ring.h"

namespace pullman::shm {

TEST_CASE("a thread reads from a ring what another one writes to it") {
  constexpr std::uint32_t kCount = 200'000;
  alignas(kLineBytes) std::array<std::byte, ring_bytes(1024)> memory{};
  std::thread writes([&] {
    RingWriter writer(memory);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const std::size_t length = sizeof i + i % 100;
      std::byte* place = writer.reserve(length);
      while (place == nullptr) {
        std::this_thread::yield();
        place = writer.reserve(length);
      }
      std::memset(place, static_cast<int>(i % 251), length);
      std::memcpy(place, &i, sizeof i);
      writer.commit();
    }
  });
  RingReader reader(memory);
  std::uint32_t good = 0;
  for (std::uint32_t i = 0; i < kCount;) {
    const auto record = reader.front();
    if (!record) {
      if (reader.is_corrupt()) break;
      std::this_thread::yield();
      continue;
    }
    std::uint32_t number = 0;
    std::memcpy(&number, record->data(), sizeof number);
    const bool ends_right = record->size() == sizeof number || record->back() == std::byte(i % 251);
    good += number == i && record->size() == sizeof i + i % 100 && ends_right;
    reader.pop();
    ++i;
  }
  writes.join();
  CHECK_FALSE(reader.is_corrupt());
  CHECK(good == kCount);
}

}  // namespace pullman::shm
