// In what order an outbox cuts the messages that are too long for one packet.
#include "outbox_sender.h"

namespace pullman::message {
namespace {

using Sender = OutboxSender;
constexpr std::size_t kPacket = Sender::kPacket;
constexpr std::size_t kEager = Sender::kEager;
constexpr MessageId kFirst = Sender::kFirst;

}  // namespace

TEST_CASE("alone, a message's eager bytes leave in one go") {
  Sender sender;
  sender.send(sender.message.size());
  std::uint32_t chunks = 0;
  while (sender.next() == kFirst) chunks += sender.chunks;
  CHECK(chunks == kEager / kPacket + 1);
}

TEST_CASE("while what was granted is being cut, a few chunks of the next messages ask for theirs") {
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

  SECTION("which are granted when their turn comes: the rest of them is bulk, too") {
    sender.grant(kFirst + 1);
    std::uint32_t id = sender.next();
    while (id == kFirst) id = sender.next();
    CHECK(id == kFirst + 1);
    CHECK(sender.was_bulk);
  }
  SECTION("and if no grant comes the eager bytes leave behind it") {
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

TEST_CASE("who was begun alone makes way for what is granted meanwhile") {
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

TEST_CASE("who needs no grant, or is to go ahead, waits for nothing that was granted") {
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

TEST_CASE("a result that comes early ends what is still to be cut, wherever it stands") {
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
