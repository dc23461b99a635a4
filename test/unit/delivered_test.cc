#include "message/delivered.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace pullman::message {
namespace {

constexpr MessageId kFirst = (std::uint64_t{7} << 32) + 100;

// What a window says in a BYE, and what is read of that.
std::vector<std::byte> bye_of(const IdWindow& window) {
  std::array<std::uint64_t, wire::kMostByeWords> words;
  std::vector<std::byte> bytes(wire::kByeBytes + sizeof words);
  const std::size_t count = window.beyond(words);
  bytes.resize(wire::put_bye(bytes.data(), window.floor(), std::span(words).first(count)));
  return bytes;
}

TEST_CASE("a BYE says of each message whether it has arrived") {
  const std::set<MessageId> ahead =
      GENERATE(std::set<MessageId>{}, std::set<MessageId>{1}, std::set<MessageId>{64},
               std::set<MessageId>{63, 65, 700}, std::set<MessageId>{1, 2, 4095});
  Pool<IdBitmap> bitmaps(1);
  IdWindow window;
  window.start(kFirst);
  window.finish_several(kFirst, 5, bitmaps);
  for (const MessageId id : ahead) window.finish(kFirst + 5 + id, bitmaps);
  const auto bytes = bye_of(window);
  wire::Frame bye;
  wire::FrameReader reader(bytes);
  REQUIRE(reader.next(bye));

  const Delivered delivered(bye, kFirst + 5000);

  CHECK(delivered.contains(kFirst));
  CHECK(delivered.contains(kFirst + 4));
  for (MessageId id = 0; id < 5000; ++id) {
    CAPTURE(id);
    REQUIRE(delivered.contains(kFirst + 5 + id) == (ahead.count(id) != 0));
  }
  CHECK(delivered.end() == kFirst + 5 + (ahead.empty() ? 0 : *ahead.rbegin() + 1));
}

}  // namespace
}  // namespace pullman::message
