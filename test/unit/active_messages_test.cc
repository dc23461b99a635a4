#include "message/rx/active_messages.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory_resource>
#include <vector>

namespace pullman::message {
namespace {

// Makes messages, and takes them off all lists at its end.
struct Several {
  InMessage& whole(MessageId id) {
    InMessage& message = wholes.emplace_back(std::pmr::new_delete_resource());
    message.id = id;
    active.note_made();
    active.add_incomplete(message);
    return message;
  }
  ShortMessage& early(MessageId id) {
    ShortMessage& message = shorts.emplace_back();
    message.id = id;
    active.note_made();
    active.add_early(message);
    return message;
  }
  ~Several() {
    while (InMessage* message = active.first_incomplete()) active.remove_incomplete(*message);
    while (ShortMessage* message = active.first_early()) active.remove_early(*message);
    while (Unexpected* message = active.first_claimed()) active.remove_claimed(*message);
    while (active.first_due() != nullptr) active.remove_first_due();
    while (ShortMessage* message = active.first_short_due()) active.remove_due(*message);
  }

  std::deque<InMessage> wholes;
  std::deque<ShortMessage> shorts;
  ActiveMessages active;
};

}  // namespace

TEST_CASE("the message that was found last is the current one until it is complete") {
  Several messages;
  InMessage& first = messages.whole(5);
  InMessage& second = messages.whole(6);
  auto& active = messages.active;
  CHECK(active.current() == &second);

  CHECK(active.find(5) == &first);
  CHECK(active.current() == &first);
  CHECK(active.peek(6) == &second);
  CHECK(active.current() == &first);

  active.remove_incomplete(first);
  CHECK(active.current() == nullptr);
  CHECK(active.find(5) == nullptr);
  CHECK(active.expects_more());
}

TEST_CASE("incomplete messages are visited by id until the visitor stops") {
  Several messages;
  for (const MessageId id : {7, 5, 6}) messages.whole(id);
  std::vector<MessageId> seen;

  messages.active.for_each_incomplete([&](InMessage& message) {
    seen.push_back(message.id);
    return message.id != 6;
  });

  CHECK((seen == std::vector<MessageId>{5, 6}));
}

TEST_CASE("a short message leaves the list of early ones when its turn comes") {
  Several messages;
  ShortMessage& message = messages.early(8);
  auto& active = messages.active;
  CHECK(active.any_waits_turn());
  CHECK(active.find_early(7) == nullptr);
  CHECK(active.find_early(8) == &message);

  active.remove_early(message);

  CHECK_FALSE(active.any_waits_turn());
  CHECK_FALSE(active.expects_more());
  active.add_claimed(message);
  CHECK(active.find_claimed(8) == &message);
  CHECK(active.find_claimed(9) == nullptr);
}

TEST_CASE("messages with due frames are served in the order in which they became due") {
  Several messages;
  InMessage& first = messages.whole(5);
  InMessage& second = messages.whole(6);
  auto& active = messages.active;
  CHECK_FALSE(active.any_due());
  active.add_due(second);
  active.add_due(first);

  CHECK(active.first_due() == &second);
  active.remove_first_due();
  CHECK(active.first_due() == &first);
  CHECK(active.any_due());
}

TEST_CASE("the destruction of the last message is reported") {
  Several messages;
  messages.whole(5);
  messages.early(6);

  CHECK_FALSE(messages.active.note_destroyed());
  CHECK(messages.active.note_destroyed());
}

}  // namespace pullman::message
