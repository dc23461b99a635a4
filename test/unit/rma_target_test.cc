#include "message/rx/rma_target.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory_resource>
#include <vector>

namespace pullman::message {
namespace {

constexpr PeerId kPeer{3, 1};
constexpr std::uint64_t kKey = 77;

// Keeps the answers.
struct Answers final : RemoteOperations {
  Request* find_pending(MessageId) override { return nullptr; }
  void remove_pending(Request&) override {}
  void answer(const Asker& to, std::span<const std::byte> bytes) override {
    answered.emplace_back(bytes.begin(), bytes.end());
    charge = to.charge;
    id = to.id;
  }
  void answer_with_copy(const Asker& to, std::span<const std::byte> bytes) override {
    answer(to, bytes);
  }

  std::vector<std::vector<std::byte>> answered;
  std::uint64_t charge = 0;
  MessageId id = 0;
};

// A region of 64 bytes, and a message for it.
struct Target {
  explicit Target(Access access = Access::kReadWrite) {
    regions.add(kKey, memory, access);
    message.id = 9;
    message.tag = kKey;
    message.charge = 500;
  }

  void be_put(std::uint64_t offset, std::size_t length, std::uint8_t flags = 0) {
    message.kind = static_cast<std::uint8_t>(wire::kind_of(wire::Class::kPut) | flags);
    const std::size_t lead =
        wire::put_put_lead(bytes.data(), message.kind, {.immediate = 42, .offset = offset});
    message.total = lead + length;
    message.bytes = bytes.data();
  }
  AtomicRequest atomic(const wire::AtomicLead& lead, std::uint64_t operand) {
    message.kind = wire::kind_of(wire::Class::kAtomic);
    const std::size_t used = wire::put_atomic_lead(bytes.data(), lead);
    std::memcpy(bytes.data() + used, &operand, sizeof operand);
    message.total = used + sizeof operand;
    message.bytes = bytes.data();
    return AtomicRequest(message);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(64);
  std::vector<std::byte> bytes = std::vector<std::byte>(128);
  Regions regions;
  Answers answers;
  Reserve reserve{0};
  Terms terms{1 << 20, 1 << 20, reserve};
  AllowanceGranted allowance{terms};
  InMessage message{std::pmr::new_delete_resource()};
  RmaTarget target{regions, answers, kPeer};
};

wire::AtomicLead sum_at(std::uint64_t offset) {
  return {.offset = offset,
          .op = static_cast<std::uint8_t>(AtomicOp::kSum),
          .type = static_cast<std::uint8_t>(AtomicType::kUint64),
          .fetches = true,
          .count = 1};
}

}  // namespace

TEST_CASE("a put within its region is written there until it ends") {
  Target use;
  use.be_put(16, 32, wire::kImmediateOfKind);

  const auto place = use.target.begin_put(use.message);

  CHECK(place.data() == use.memory.data() + 16);
  CHECK(place.size() == 32);
  CHECK_FALSE(use.message.refused);
  CHECK(use.message.wants_result);
  CHECK(use.regions.events().empty());

  use.message.bytes = place.data();
  use.message.room = place.size();
  use.target.end_put(use.message);

  REQUIRE(use.regions.events().size() == 1);
  CHECK(use.regions.events().front().immediate == 42);
  CHECK(use.regions.events().front().offset == 16);
  CHECK(use.regions.use().writes == 1);
  CHECK(use.regions.find(kKey)->arriving.empty());
  CHECK(use.message.charge == 500 - kMessageCharge);  // the event holds that part
}

TEST_CASE("a put beyond its region, or without the access right, is refused and leaves no event") {
  const auto access = GENERATE(Access::kReadWrite, Access::kRead);
  Target use(access);
  use.be_put(access == Access::kRead ? 0 : 33, 32, wire::kImmediateOfKind);

  CHECK(use.target.begin_put(use.message).empty());
  use.target.end_put(use.message);

  CHECK(use.message.refused);
  CHECK(use.message.wants_result);
  CHECK(use.regions.events().empty());
  CHECK(use.regions.use().writes == 0);
}

TEST_CASE("a get is answered with the region's bytes, and its charge moves to the answer") {
  Target use;
  use.memory[8] = std::byte{5};
  use.memory[9] = std::byte{6};

  use.target.answer_get(use.message, {.offset = 8, .length = 2}, use.allowance);

  REQUIRE(use.answers.answered.size() == 1);
  CHECK((use.answers.answered[0] == std::vector<std::byte>{std::byte{5}, std::byte{6}}));
  CHECK(use.answers.id == 9);
  CHECK(use.answers.charge == 500);
  CHECK(use.message.charge == 0);
  CHECK_FALSE(use.message.wants_result);
}

TEST_CASE("a get beyond its region gets a RESULT instead of an answer") {
  Target use;

  use.target.answer_get(use.message, {.offset = 63, .length = 2}, use.allowance);

  CHECK(use.answers.answered.empty());
  CHECK(use.message.refused);
  CHECK(use.message.wants_result);
  CHECK(use.message.charge == 500);
}

TEST_CASE("an atomic that fetches is answered with the value before it") {
  Target use;
  const AtomicRequest request = use.atomic(sum_at(8), 7);

  use.target.execute(use.message, request, use.allowance);
  use.target.execute(use.message, request, use.allowance);

  REQUIRE(use.answers.answered.size() == 2);
  CHECK(use.answers.answered[0][0] == std::byte{0});
  CHECK(use.answers.answered[1][0] == std::byte{7});
  CHECK(use.memory[8] == std::byte{14});
}

TEST_CASE("an undefined atomic, or one with operands of another size, is refused") {
  Target use;
  wire::AtomicLead lead = sum_at(8);
  SECTION("an operation that is not defined") {
    lead.op = 200;
  }
  SECTION("more elements than operands") {
    lead.count = 2;
  }
  SECTION("a place beyond the region") {
    lead.offset = 60;
  }

  use.target.execute(use.message, use.atomic(lead, 7), use.allowance);

  CHECK(use.message.refused);
  CHECK(use.message.wants_result);
  CHECK(use.answers.answered.empty());
  CHECK(use.memory == std::vector<std::byte>(64));
}

}  // namespace pullman::message
