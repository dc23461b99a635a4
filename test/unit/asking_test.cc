// Which packets ask for their ACK when nothing holds the sender back (wire.md 6.2).
#include "outbox_sender.h"

namespace pullman::message {
namespace {

using Sender = OutboxSender;

// Returns how many packets leave until one asks for its ACK, inclusive; 0 if none of the rest does.
std::uint32_t packets_until_asked(Sender& sender) {
  std::uint32_t packets = 0;
  while (sender.next() != 0) {
    packets += sender.chunks;
    if (sender.asks) return packets;
  }
  return 0;
}

}  // namespace

TEST_CASE(
    "of a row of messages the last packet asks for its ACK, and a message's end every 64 packets") {
  Sender sender;
  constexpr std::uint32_t kMessages = 50;
  for (std::uint32_t i = 0; i < kMessages; ++i) sender.send(4000);  // three packets each

  CHECK(packets_until_asked(sender) == 66);
  CHECK(packets_until_asked(sender) == 66);
  CHECK(packets_until_asked(sender) == 3 * kMessages - 2 * 66);
  CHECK(packets_until_asked(sender) == 0);
}

TEST_CASE("an ACK that comes puts off the next request") {
  Sender sender;
  for (int i = 0; i < 50; ++i) sender.send(4000);
  for (std::uint32_t packets = 0; packets < 60; packets += sender.chunks) sender.next();

  sender.outbox.note_ack();

  CHECK(packets_until_asked(sender) == 66);
}

TEST_CASE("a long message asks for its ACK with its last packet, and no other") {
  Sender sender;
  sender.send(sender.message.size());
  CHECK(packets_until_asked(sender) == 0);  // the GRANT will acknowledge it
  sender.grant(Sender::kFirst);

  CHECK(packets_until_asked(sender) > 64);
  CHECK(sender.next() == 0);
}

TEST_CASE("messages of one packet ask for an ACK once in 64") {
  Sender sender;
  for (int i = 0; i < 150; ++i) sender.send(1300);

  CHECK(packets_until_asked(sender) == 64);
  CHECK(packets_until_asked(sender) == 64);
  CHECK(packets_until_asked(sender) == 0);  // no send waits: all were copied
}

}  // namespace pullman::message
