#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "wire/bytes.h"
#include "wire/memory.h"

namespace pullman::wire {
namespace {

constexpr std::array<std::byte, kMemorySecretBytes> kSecret{std::byte{1}, std::byte{2}};

std::span<const std::byte> body_of(std::span<const std::byte> frame) {
  FrameReader reader(frame);
  Frame read;
  REQUIRE(reader.next(read));
  REQUIRE(read.type == FrameType::kMemory);
  REQUIRE(reader.at_end());
  return read.data;
}

}  // namespace

TEST_CASE("an offer of memory comes with its name and its secret") {
  const std::string name(GENERATE(0u, 1u, 96u), 'n');
  std::array<std::byte, kMaxMemoryBytes> bytes{};
  const std::size_t length = put_memory(bytes.data(), {.secret = kSecret, .name = name});
  CHECK(length == kFrameHeadBytes + kMemorySecretBytes + name.size());

  const auto offer = decode_memory(body_of(std::span(bytes).first(length)));

  REQUIRE(offer);
  CHECK(offer->secret == kSecret);
  CHECK(offer->name == name);
}

TEST_CASE("an offer of memory that is too short or too long is malformed") {
  const std::array<std::byte, kMaxMemoryBytes> bytes{};
  CHECK_FALSE(decode_memory(std::span(bytes).first(kMemorySecretBytes - 1)));
  CHECK(decode_memory(std::span(bytes).first(kMemorySecretBytes)));
  CHECK(decode_memory(std::span(bytes).first(kMemorySecretBytes + kMaxMemoryName)));
  CHECK_FALSE(decode_memory(std::span(bytes).first(kMemorySecretBytes + kMaxMemoryName + 1)));
}

TEST_CASE("a chunk whose bytes are elsewhere is read with their number") {
  std::array<std::byte, kChunkBytes> bytes{};
  put_chunk(bytes.data(), {.id = 7, .tag = 9, .total = 1'000'000, .offset = 5000, .data = {}}, 0);
  Frame chunk;
  REQUIRE(read_chunk_elsewhere(bytes, 300'000, chunk));
  CHECK(chunk.id == 7);
  CHECK(chunk.tag == 9);
  CHECK(chunk.total == 1'000'000);
  CHECK(chunk.offset == 5000);
  CHECK(chunk.data.size() == 300'000);

  CHECK_FALSE(read_chunk_elsewhere(bytes, 0, chunk));
  CHECK_FALSE(read_chunk_elsewhere(bytes, 995'001, chunk));
  CHECK_FALSE(read_chunk_elsewhere(std::span(bytes).first(kChunkBytes - 1), 10, chunk));
  store8(bytes.data(), static_cast<std::uint8_t>(FrameType::kMessage));
  CHECK_FALSE(read_chunk_elsewhere(bytes, 10, chunk));
}

}  // namespace pullman::wire
