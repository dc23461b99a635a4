// In what order an outbox cuts the messages that are too long for one packet.
#include "outbox_sender.h"

namespace pullman::message {
namespace {

using Sender = OutboxSender;
constexpr std::size_t kPacket = Sender::kPacket;
constexpr std::size_t kEagerPart = Sender::kEager;
constexpr MessageId kFirstId = Sender::kFirst;
// What a chunk may have where the receiver copies it from its place.
constexpr std::size_t kLongChunk = 20 * kEagerPart;

}  // namespace

TEST_CASE("a long message that is alone sends all its eager bytes at once") {
  Sender sender;
  sender.send(sender.message.size());
  std::uint32_t chunks = 0;
  while (sender.next() == kFirstId) chunks += sender.chunks;
  CHECK(chunks == kEagerPart / kPacket + 1);
}

TEST_CASE("while a granted message is cut, later ones send two chunks each to have a grant") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirstId);
  sender.grant(kFirstId);
  sender.send(sender.message.size());
  sender.send(sender.message.size());

  CHECK(sender.next() == kFirstId + 1);
  CHECK(sender.chunks == kMinRun);
  CHECK(sender.next() == kFirstId + 2);
  CHECK(sender.chunks == kMinRun);
  CHECK(sender.next() == kFirstId);
  CHECK(sender.was_bulk);

  SECTION("one that is granted then sends its rest in bulk packets, too") {
    sender.grant(kFirstId + 1);
    std::uint32_t id = sender.next();
    while (id == kFirstId) id = sender.next();
    CHECK(id == kFirstId + 1);
    CHECK(sender.was_bulk);
  }
  SECTION("one that is not granted sends its eager bytes behind the granted message") {
    std::uint32_t id = sender.next();
    while (id == kFirstId) id = sender.next();
    CHECK(id == kFirstId + 1);
    CHECK_FALSE(sender.was_bulk);
    while (id == kFirstId + 1) id = sender.next();
    CHECK(id == kFirstId + 2);
    while (id == kFirstId + 2) id = sender.next();
    CHECK(id == 0);
    CHECK_FALSE(sender.outbox.has_packets());
    sender.grant(kFirstId + 2);
    CHECK(sender.next() == kFirstId + 2);
    CHECK(sender.was_bulk);
  }
}

TEST_CASE("a message that began alone makes way for one that is granted later") {
  Sender sender;
  sender.send(sender.message.size());
  while (sender.next() == kFirstId) {
  }
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirstId + 1);
  REQUIRE(sender.chunks == 4);
  sender.grant(kFirstId);
  CHECK(sender.next() == kFirstId);
}

TEST_CASE("a message that needs no grant, or has priority, does not make way for a granted one") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirstId);
  sender.grant(kFirstId);
  SECTION("not longer than the eager bytes") {
    sender.send(kEagerPart);
  }
  SECTION("of priority") {
    sender.send_ahead(sender.message.size());
  }
  std::uint32_t chunks = 0;
  while (sender.next() == kFirstId + 1) chunks += sender.chunks;
  CHECK(chunks == kEagerPart / kPacket + 1);
}

TEST_CASE("a RESULT that comes early ends the message, whatever its stage") {
  Sender sender;
  sender.send(sender.message.size());
  REQUIRE(sender.next() == kFirstId);
  sender.grant(kFirstId);
  const std::span<const std::byte> segment(sender.message);
  const SendDescriptor descriptor{
      .tag = 5, .segments = {&segment, 1}, .size = segment.size(), .wants_result = true};
  sender.outbox.send({}, descriptor, sender.requests.emplace_back());
  REQUIRE(sender.next() == kFirstId + 1);
  REQUIRE(sender.next() == kFirstId);

  CHECK(sender.outbox.handle_result(kFirstId + 1, Status::kRefusedAccess) == Outbox::Found::kYes);
  std::uint32_t id = sender.next();
  while (id == kFirstId) id = sender.next();
  CHECK(id == 0);
}

TEST_CASE("where one chunk may hold it all, a message that needs a grant sends little before") {
  Sender sender;
  const auto cut = [&sender] {
    Packet* packet = sender.outbox.next_packet(Sender::kHeads, kLongChunk);
    if (packet == nullptr) return std::size_t{0};
    sender.left.push_back(packet);
    return std::size_t{packet->payload_bytes};
  };
  sender.send(sender.message.size());
  const std::size_t beginning = cut();
  CHECK(beginning > 0);
  CHECK(beginning <= 1024);
  CHECK(cut() == 0);
  sender.grant(kFirstId);
  CHECK(cut() == sender.message.size() - beginning);

  sender.send(kEagerPart);
  CHECK(cut() == kEagerPart);
}

TEST_CASE("an announced message of which a part is wanted sends all of that part") {
  constexpr std::size_t kWanted = 2 * kEagerPart;
  Sender sender(kMessageCharge);
  sender.send(sender.message.size());
  REQUIRE(sender.outbox.announce());
  sender.left.push_back(sender.outbox.next_packet());
  REQUIRE(sender.outbox.handle_grant(kFirstId, kWanted));

  Packet* packet = sender.outbox.next_packet(Sender::kHeads, kLongChunk);
  REQUIRE(packet != nullptr);
  sender.left.push_back(packet);
  CHECK(packet->payload_bytes == kWanted);
}

}  // namespace pullman::message
