// In what order an outbox cuts the messages that are too long for one packet.
#include "outbox_sender.h"

namespace pullman::message {
namespace {

using Sender = OutboxSender;
constexpr std::size_t kPacket = Sender::kPacket;
constexpr std::size_t kEager = Sender::kEager;
constexpr MessageId kFirst = Sender::kFirst;

}  // namespace

TEST_CASE("a long message that is alone sends all its eager bytes at once") {
  Sender sender;
  sender.send(sender.message.size());
  std::uint32_t chunks = 0;
  while (sender.next() == kFirst) chunks += sender.chunks;
  CHECK(chunks == kEager / kPacket + 1);
}

TEST_CASE(
    "while a granted message is being cut, later ones send two chunks each, and so ask for a "
    "grant") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirst);
  sender.grant(kFirst);
  sender.send(sender.message.size());
  sender.send(sender.message.size());

  CHECK(sender.next() == kFirst + 1);
  CHECK(sender.chunks == kMinRun);
  CHECK(sender.next() == kFirst + 2);
  CHECK(sender.chunks == kMinRun);
  CHECK(sender.next() == kFirst);
  CHECK(sender.was_bulk);

  SECTION("one that is granted then sends the rest in bulk packets, too") {
    sender.grant(kFirst + 1);
    std::uint32_t id = sender.next();
    while (id == kFirst) id = sender.next();
    CHECK(id == kFirst + 1);
    CHECK(sender.was_bulk);
  }
  SECTION("one that is not granted sends its eager bytes behind the granted message") {
    std::uint32_t id = sender.next();
    while (id == kFirst) id = sender.next();
    CHECK(id == kFirst + 1);
    CHECK_FALSE(sender.was_bulk);
    while (id == kFirst + 1) id = sender.next();
    CHECK(id == kFirst + 2);
    while (id == kFirst + 2) id = sender.next();
    CHECK(id == 0);
    CHECK_FALSE(sender.outbox.has_packets());
    sender.grant(kFirst + 2);
    CHECK(sender.next() == kFirst + 2);
    CHECK(sender.was_bulk);
  }
}

TEST_CASE("a message that began alone makes way for one that is granted meanwhile") {
  Sender sender;
  sender.send(sender.message.size());
  while (sender.next() == kFirst) {
  }
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirst + 1);
  REQUIRE(sender.chunks == 4);
  sender.grant(kFirst);
  CHECK(sender.next() == kFirst);
}

TEST_CASE("a message that needs no grant, or has priority, does not make way for a granted one") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirst);
  sender.grant(kFirst);
  SECTION("not longer than the eager bytes") {
    sender.send(kEager);
  }
  SECTION("of priority") {
    sender.send_ahead(sender.message.size());
  }
  std::uint32_t chunks = 0;
  while (sender.next() == kFirst + 1) chunks += sender.chunks;
  CHECK(chunks == kEager / kPacket + 1);
}

TEST_CASE("a RESULT that comes early ends the message, whatever its stage") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirst);
  sender.grant(kFirst);
  const std::span<const std::byte> piece(sender.message);
  const SendDescriptor descriptor{
      .tag = 5, .pieces = {&piece, 1}, .size = piece.size(), .wants_result = true};
  sender.outbox.send({}, descriptor, sender.requests.emplace_back());
  REQUIRE(sender.next() == kFirst + 1);
  REQUIRE(sender.next() == kFirst);

  CHECK(sender.outbox.handle_result(kFirst + 1, Status::kRefusedAccess) == Outbox::Found::kYes);
  std::uint32_t id = sender.next();
  while (id == kFirst) id = sender.next();
  CHECK(id == 0);
}

}  // namespace pullman::message
