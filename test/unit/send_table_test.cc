#include "message/tx/send_table.h"

#include <catch2/catch.hpp>
#include <vector>

#include "message/tx/waiting_sends.h"

namespace pullman::message {
namespace {

constexpr MessageId kFirstSend = 5;

// Two sends, of which the second has no id yet.
struct Two {
  Two() {
    for (Request* request : {&with_id, &without_id}) {
      Operation& op = Operation::of(*request);
      op.begin(Operation::Kind::kSend, {}, 1);
      table.add(op);
    }
    Operation::of(with_id).message = kFirstSend;
    table.note_id(Operation::of(with_id));
  }
  ~Two() { table.fail(Status::kClosed); }

  Request with_id, without_id;
  SendTable table;
};

}  // namespace

TEST_CASE("a send is found by its id until it is removed") {
  Two sends;
  CHECK(sends.table.find(kFirstSend) == &Operation::of(sends.with_id));
  CHECK(sends.table.find(kFirstSend + 1) == nullptr);
  CHECK(sends.table.oldest_id(77) == kFirstSend);

  sends.table.remove(Operation::of(sends.with_id));

  CHECK(sends.table.find(kFirstSend) == nullptr);
  CHECK(sends.table.oldest_id(77) == 77);
  CHECK(sends.table.size() == 1);
  Operation::of(sends.with_id).finish(Status::kOk, 0);
}

TEST_CASE("sends are visited in order, and may be removed during the visit") {
  Two sends;
  std::vector<Request*> seen;

  sends.table.for_each([&](Operation& op) {
    seen.push_back(op.request);
    sends.table.remove(op);
  });

  CHECK((seen == std::vector<Request*>{&sends.with_id, &sends.without_id}));
  CHECK(sends.table.empty());
  for (Request* request : seen) Operation::of(*request).finish(Status::kOk, 0);
}

TEST_CASE("all sends of a peer that has ended finish with the reason") {
  Two sends;

  sends.table.fail(Status::kPeerDied);

  CHECK(sends.table.empty());
  CHECK(sends.with_id.status() == Status::kPeerDied);
  CHECK(sends.without_id.status() == Status::kPeerDied);
}

TEST_CASE("an answer that the peer asked for waits for no other send") {
  Request plain, second, answer;
  Operation::of(answer).special.is_solicited = true;
  WaitingSends waiting;
  for (Request* request : {&plain, &second, &answer}) waiting.add(Operation::of(*request));

  CHECK(waiting.first_in_order() == &Operation::of(plain));
  CHECK(waiting.first_solicited() == &Operation::of(answer));
  CHECK(stage_of(Operation::of(answer)) == SendStage::kWaiting);

  waiting.remove(Operation::of(answer));
  CHECK(waiting.first_solicited() == nullptr);
  waiting.remove(Operation::of(plain));
  CHECK(waiting.first_in_order() == &Operation::of(second));
  CHECK(waiting.has_in_order());

  waiting.clear();
  CHECK(waiting.empty());
}

}  // namespace pullman::message
