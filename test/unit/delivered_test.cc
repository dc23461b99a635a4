#include "message/tx/delivered.h"

#include <catch2/catch.hpp>
#include <set>
#include <vector>

namespace pullman::message {
namespace {

constexpr MessageId kFirst = (std::uint64_t{7} << 32) + 100;

// Returns a BYE: all before `missing` has arrived but `excepted`, and beyond it the ids at the
// distances `ahead`.
std::vector<std::byte> bye_of(MessageId missing, const std::vector<std::uint32_t>& excepted,
                              const std::set<MessageId>& ahead) {
  std::vector<std::uint64_t> words(ahead.empty() ? 0 : (*ahead.rbegin() - 1) / 64 + 1);
  for (const MessageId id : ahead) words[(id - 1) / 64] |= std::uint64_t{1} << (id - 1) % 64;
  std::vector<std::byte> bytes(wire::kByeBytes + wire::kMaxByeData);
  bytes.resize(wire::put_bye(bytes.data(), missing, excepted, words));
  return bytes;
}

TEST_CASE("a BYE says of each message whether it has arrived") {
  const std::set<MessageId> ahead =
      GENERATE(std::set<MessageId>{}, std::set<MessageId>{1}, std::set<MessageId>{64},
               std::set<MessageId>{63, 65, 700}, std::set<MessageId>{1, 2, 3900});
  const auto bytes = bye_of(kFirst + 5, {low32(kFirst + 2), low32(kFirst + 4)}, ahead);
  wire::Frame bye;
  wire::FrameReader reader(bytes);
  REQUIRE(reader.next(bye));

  const Delivered delivered(bye, kFirst + 5000);

  CHECK(delivered.contains(kFirst));
  CHECK_FALSE(delivered.contains(kFirst + 2));
  CHECK(delivered.contains(kFirst + 3));
  CHECK_FALSE(delivered.contains(kFirst + 4));
  for (MessageId id = 0; id < 5000; ++id) {
    CAPTURE(id);
    REQUIRE(delivered.contains(kFirst + 5 + id) == (ahead.count(id) != 0));
  }
  CHECK(delivered.end() == kFirst + 5 + (ahead.empty() ? 0 : *ahead.rbegin() + 1));
}

}  // namespace
}  // namespace pullman::message
