// wire/kind.h and the kinds of frames: leads are read as written, and a kind that is not allowed is
// a bad frame (wire.md 10.1). And regions, which check all that a peer asks for (10.4).
#include "wire/kind.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "message/rx/regions.h"
#include "wire/frame.h"

namespace pullman::wire {
namespace {

// Returns whether a MESSAGE of that kind with `length` bytes of data is well-formed.
bool message_is_good(std::uint8_t kind, std::size_t length) {
  std::vector<std::byte> bytes(kMessageBytes + length);
  put_message(bytes.data(),
              {.type = FrameType::kMessage, .kind = kind, .id = 7, .tag = 8, .data = {}}, length);
  FrameReader reader(bytes);
  Frame frame;
  const bool good = reader.next(frame);
  if (good) CHECK(frame.kind == kind);
  CHECK(reader.ok() == good);
  return good;
}

bool chunk_is_good(std::uint8_t kind, std::uint64_t total) {
  std::vector<std::byte> bytes(kChunkBytes + 1);
  put_chunk(
      bytes.data(),
      {.type = FrameType::kChunk, .kind = kind, .id = 7, .tag = 8, .total = total, .data = {}}, 1);
  return well_formed(bytes);
}

std::uint8_t kind(Class what, unsigned bits = 0) {
  return static_cast<std::uint8_t>(kind_of(what) | bits);
}

}  // namespace

TEST_CASE("an undefined kind is a bad frame, in messages and chunks") {
  for (unsigned k = 0; k < 256; ++k) {
    const unsigned what = k >> 4;
    const unsigned bits = k & 15;
    const bool of_high_space = what > 8;
    const bool good =
        what == 0 || of_high_space || (what == 1 && (bits & ~4u) == 0) || (what <= 4 && bits == 0);
    const std::size_t length = what == 2 ? 16 : 64;
    CHECK(message_is_good(static_cast<std::uint8_t>(k), length) == good);
    CHECK(chunk_is_good(static_cast<std::uint8_t>(k), length) == good);
  }
}

TEST_CASE("each space of a message has one kind, with or without each flag") {
  std::set<unsigned> kinds;
  for (unsigned space = 0; space < kSpacesOnWire; ++space) {
    for (const unsigned more : {0u, unsigned{kImmediateOfKind}, unsigned{kSynchronousOfKind}}) {
      const auto kind = static_cast<std::uint8_t>(kind_of_space(space) | more);
      CHECK(class_of(kind) == Class::kMessage);
      CHECK(space_of(kind) == space);
      CHECK(has_immediate(kind) == (more == kImmediateOfKind));
      CHECK(is_synchronous(kind) == (more == kSynchronousOfKind));
      CHECK(kind_is_sane(kind, 8));
      kinds.insert(kind);
    }
  }
  CHECK(kinds.size() == 3 * kSpacesOnWire);
}

TEST_CASE(
    "a message that is shorter than its lead, or longer than its kind may be, is a bad frame") {
  CHECK_FALSE(message_is_good(kImmediateOfKind, 7));
  CHECK(message_is_good(kImmediateOfKind, 8));
  CHECK_FALSE(message_is_good(kind(Class::kPut), 7));
  CHECK(message_is_good(kind(Class::kPut), 8));
  CHECK_FALSE(message_is_good(kind(Class::kPut, kImmediateOfKind), 15));
  CHECK(message_is_good(kind(Class::kPut, kImmediateOfKind), 16));
  CHECK_FALSE(message_is_good(kind(Class::kGet), 15));
  CHECK_FALSE(message_is_good(kind(Class::kGet), 17));
  CHECK_FALSE(message_is_good(kind(Class::kAtomic), 15));
  CHECK(message_is_good(kind(Class::kAtomic), 16 + kMaxAtomicBytes));
  CHECK_FALSE(message_is_good(kind(Class::kAtomic), 17 + kMaxAtomicBytes));
  CHECK(message_is_good(kind(Class::kAnswer), 0));
}

TEST_CASE("a plain message has no kind, whatever was read before it") {
  FrameList frames;
  std::vector<std::byte> bytes(kMessageBytes + 8);
  put_message(
      bytes.data(),
      {.type = FrameType::kMessage, .kind = kImmediateOfKind, .id = 7, .tag = 8, .data = {}}, 8);
  REQUIRE(frames.read(bytes));
  CHECK(frames.next()->kind == kImmediateOfKind);

  put_message(bytes.data(), 7, 8, 8);
  REQUIRE(frames.read(bytes));

  CHECK(frames.next()->kind == 0);
}

TEST_CASE("frames that do not begin a message have no kind") {
  for (const FrameType type :
       {FrameType::kGrant, FrameType::kAllowance, FrameType::kPing, FrameType::kBye,
        FrameType::kPadding, FrameType::kResult, FrameType::kBlocked}) {
    std::vector<std::byte> bytes(kAllowanceBytes);
    put_frame_head(bytes.data(), type, 0);
    bytes[1] = std::byte{1};
    CHECK_FALSE(well_formed(bytes));
  }
}

TEST_CASE("a RESULT says one of two things") {
  std::vector<std::byte> bytes(kResultBytes);
  CHECK(put_result(bytes.data(), 0x1'0000'0009, Result::kRefusedAccess) == kResultBytes);
  FrameReader reader(bytes);
  Frame frame;
  REQUIRE(reader.next(frame));
  CHECK(frame.type == FrameType::kResult);
  CHECK(frame.id == 9);
  CHECK(frame.limit == 1);
  bytes[11] = std::byte{2};
  CHECK_FALSE(well_formed(bytes));
  bytes[11] = std::byte{1};
  bytes[8] = std::byte{1};
  CHECK_FALSE(well_formed(bytes));
  bytes.resize(kResultBytes - 1);
  CHECK_FALSE(well_formed(bytes));
}

TEST_CASE("leads are read as they were written") {
  Lead lead{};
  CHECK(put_put_lead(lead.data(), kind(Class::kPut, kImmediateOfKind),
                     {.immediate = 5, .offset = 6}) == 16);
  CHECK(read_put_lead(lead.data(), kind(Class::kPut, kImmediateOfKind)).immediate == 5);
  CHECK(read_put_lead(lead.data(), kind(Class::kPut, kImmediateOfKind)).offset == 6);
  CHECK(put_put_lead(lead.data(), kind(Class::kPut), {.immediate = 5, .offset = 7}) == 8);
  CHECK(read_put_lead(lead.data(), kind(Class::kPut)).offset == 7);
  CHECK(put_get_lead(lead.data(), {.offset = 1, .length = 2}) == 16);
  CHECK(read_get_lead(lead.data()).offset == 1);
  CHECK(read_get_lead(lead.data()).length == 2);
  put_atomic_lead(lead.data(), {.offset = 3, .op = 4, .type = 5, .fetches = true, .count = 6});
  const auto atomic = read_atomic_lead(lead.data());
  REQUIRE(atomic);
  CHECK(atomic->offset == 3);
  CHECK(atomic->op == 4);
  CHECK(atomic->type == 5);
  CHECK(atomic->fetches);
  CHECK(atomic->count == 6);
  lead[10] = std::byte{2};
  CHECK_FALSE(read_atomic_lead(lead.data()));
  lead[10] = std::byte{1};
  lead[11] = std::byte{1};
  CHECK_FALSE(read_atomic_lead(lead.data()));
}

TEST_CASE("a region opens for what lies within it and is granted, and for nothing else") {
  message::Regions regions;
  std::vector<std::byte> memory(100);
  REQUIRE(regions.add(5, memory, Access::kRead));
  CHECK_FALSE(regions.add(5, memory, Access::kRead));
  const auto opens = [&](std::uint64_t key, std::uint64_t offset, std::uint64_t length,
                         Access needed = Access::kRead) {
    const auto place =
        regions.open({.key = key, .offset = offset, .length = length, .needed = needed});
    if (place) CHECK((place->data() == memory.data() + offset && place->size() == length));
    return place.has_value();
  };
  constexpr std::uint64_t kMost = ~std::uint64_t{0};

  CHECK(opens(5, 0, 100));
  CHECK(opens(5, 100, 0));
  CHECK(opens(5, 99, 1));
  CHECK_FALSE(opens(5, 0, 101));
  CHECK_FALSE(opens(5, 101, 0));
  CHECK_FALSE(opens(5, 1, kMost));
  CHECK_FALSE(opens(5, kMost, 1));
  CHECK_FALSE(opens(5, kMost, kMost));
  CHECK_FALSE(opens(5, kMost - 49, 100));
  CHECK_FALSE(opens(6, 0, 0));
  CHECK_FALSE(opens(5, 0, 1, Access::kWrite));
  CHECK_FALSE(opens(5, 0, 1, Access::kReadWrite));
  CHECK(regions.remove(5));
  CHECK_FALSE(regions.remove(5));
  CHECK_FALSE(opens(5, 0, 0));
}

}  // namespace pullman::wire
