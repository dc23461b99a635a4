#include "message/rx/placement.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory_resource>
#include <new>
#include <vector>

#include "message/send_descriptor.h"

namespace pullman::message {
namespace {

// A thousand bytes of memory.
struct Little : std::pmr::memory_resource {
  std::size_t left = 1000;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > left) throw std::bad_alloc();
    left -= bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* at, std::size_t bytes, std::size_t alignment) override {
    left += bytes;
    std::pmr::new_delete_resource()->deallocate(at, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// A message whose bytes arrive.
struct Arriving {
  explicit Arriving(std::size_t total, std::uint8_t kind = 0) {
    message.kind = kind;
    message.total = message.wanted = total;
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + 1);
  }
  ~Arriving() { release_place(message, memory); }

  void arrive(std::size_t offset, std::size_t length) {
    REQUIRE(has_place(message, memory));
    message.arrived.add({offset, offset + length});
    place_bytes(message, offset, std::span(sent).subspan(offset, length));
  }

  std::vector<std::byte> sent = std::vector<std::byte>(2000);
  Little memory;
  InMessage message{std::pmr::new_delete_resource()};
};

}  // namespace

TEST_CASE("bytes that come before the match are held, and move to the buffer with it") {
  Arriving in(600);
  std::vector<std::byte> buffer(600);
  in.arrive(300, 100);
  CHECK(in.memory.left == 400);

  redirect(in.message, buffer.data(), buffer.size(), in.memory);

  CHECK(in.memory.left == 1000);
  CHECK(std::memcmp(buffer.data() + 300, in.sent.data() + 300, 100) == 0);
  in.arrive(0, 300);
  CHECK(std::memcmp(buffer.data(), in.sent.data(), 400) == 0);
  CHECK(in.memory.left == 1000);
}

TEST_CASE("without memory a message has no place until it is matched") {
  Arriving in(1001);
  CHECK_FALSE(has_place(in.message, in.memory));

  std::vector<std::byte> buffer(1001);
  redirect(in.message, buffer.data(), buffer.size(), in.memory);

  CHECK(has_place(in.message, in.memory));
}

TEST_CASE("bytes beyond the buffer are dropped") {
  Arriving in(600);
  std::vector<std::byte> buffer(100, std::byte{0xEE});
  redirect(in.message, buffer.data(), 50, in.memory);

  in.arrive(0, 600);

  CHECK(std::memcmp(buffer.data(), in.sent.data(), 50) == 0);
  CHECK(buffer[50] == std::byte{0xEE});
}

TEST_CASE("a buffer of several segments is filled in their order") {
  Arriving in(600);
  std::vector<std::byte> one(100), two(500);
  const std::span<std::byte> sinks[] = {one, two};
  Request receive;
  make_room(Operation::of(receive), 2);
  describe_sink(Operation::of(receive), sinks);
  in.message.receive = &receive;
  redirect(in.message, nullptr, 600, in.memory);

  in.arrive(0, 600);

  CHECK(std::memcmp(one.data(), in.sent.data(), 100) == 0);
  CHECK(std::memcmp(two.data(), in.sent.data() + 100, 500) == 0);
  in.message.receive = nullptr;
}

TEST_CASE("bytes in order are placed where the chunk before them ended") {
  Arriving in(600);
  std::vector<std::byte> buffer(450);
  redirect(in.message, buffer.data(), buffer.size(), in.memory);
  in.arrive(0, 200);
  wire::Frame chunk{.total = 600, .offset = 100, .data = std::span(in.sent).first(100)};

  BytesInOrder next = bytes_behind(in.message, chunk);
  CHECK(next.most() == 400);
  next.put(std::span(in.sent).subspan(200, 300));

  CHECK(next.taken() == 300);
  CHECK(next.most() == 100);
  CHECK(std::memcmp(buffer.data(), in.sent.data(), 450) == 0);

  SECTION("none are taken if the chunk is not the last before them") {
    chunk.offset = 0;
    CHECK(bytes_behind(in.message, chunk).most() == 0);
  }
  SECTION("nor if bytes beyond a gap have arrived") {
    in.arrive(400, 100);
    CHECK(bytes_behind(in.message, chunk).most() == 0);
  }
  SECTION("nor if the chunk contradicts the message") {
    chunk.total = 601;
    CHECK(bytes_behind(in.message, chunk).most() == 0);
  }
}

TEST_CASE("before the match no bytes are taken in order") {
  Arriving in(600);
  in.arrive(0, 100);
  const wire::Frame chunk{.total = 600, .data = std::span(in.sent).first(100)};

  CHECK(bytes_behind(in.message, chunk).most() == 0);
}

}  // namespace pullman::message
