// pullman/multi_receive.h and the matcher: one buffer for many messages.
#include "pullman/multi_receive.h"

#include <catch2/catch.hpp>
#include <vector>

#include "message/match/matcher.h"
#include "message/multi_receive.h"
#include "message/operation.h"

namespace pullman {
namespace {

using message::Matcher;
using message::Operation;

constexpr PeerId kAlice{1, 1};

struct Posted {
  explicit Posted(std::size_t most, std::size_t least_room = 1, std::size_t size = 100)
      : buffer(size), many(most, least_room) {
    auto& state = MultiReceive::State::of(many);
    state.begin(buffer);
    Request& posted = state.posted();
    auto& op = Operation::of(posted);
    op.begin(Operation::Kind::kReceive, kAnyPeer, 7);
    op.special.is_shared = true;
    matcher.find_or_post(posted);
  }
  Request* take(std::uint64_t bytes) { return matcher.take_posted(kAlice, 7, bytes); }
  static void finish(Request& part, std::size_t length, std::uint64_t of) {
    Operation::of(part).finish_receive(length < of ? Status::kTruncated : Status::kOk, kAlice, 7,
                                       length, of);
  }

  std::vector<std::byte> buffer;
  Matcher matcher;
  MultiReceive many;
};

}  // namespace

TEST_CASE("messages lie one behind the other, and are reported in the order of completion") {
  Posted posted(3);
  Request* first = posted.take(60);
  Request* second = posted.take(10);
  CHECK(Operation::of(*first).buffer == posted.buffer.data());
  CHECK(Operation::of(*second).buffer == posted.buffer.data() + 60);
  CHECK_FALSE(posted.many.take());

  Posted::finish(*second, 10, 10);
  Posted::finish(*first, 60, 60);

  const auto told = posted.many.take();
  REQUIRE(told);
  CHECK(told->bytes.data() == posted.buffer.data() + 60);
  CHECK(told->bytes.size() == 10);
  CHECK(told->source == kAlice);
  CHECK(posted.many.take()->bytes.size() == 60);
  CHECK_FALSE(posted.many.take());
  CHECK(posted.many.status() == Status::kPending);
  Request& receive = MultiReceive::State::of(posted.many).posted();
  posted.matcher.remove(receive);
  Operation::of(receive).finish(Status::kCancelled, 0);
  CHECK(posted.many.status() == Status::kCancelled);
}

TEST_CASE("a shared buffer stays ahead of receives that were posted later until it is used up") {
  const bool by_count = GENERATE(true, false);
  Posted posted(by_count ? 2 : 9, 30);
  Request later;
  Operation::of(later).begin(Operation::Kind::kReceive, kAlice, 7);
  posted.matcher.find_or_post(later);

  Request* first = posted.take(by_count ? 1 : 50);
  Request* second = posted.take(by_count ? 1 : 21);

  CHECK(posted.take(1) == &later);
  CHECK(posted.many.status() == Status::kPending);  // two are under way
  Posted::finish(*first, by_count ? 1 : 50, by_count ? 1 : 50);
  CHECK(posted.many.status() == Status::kPending);
  Posted::finish(*second, by_count ? 1 : 21, by_count ? 1 : 21);
  CHECK(posted.many.status() == Status::kOk);
  CHECK_FALSE(posted.many.idle());
  while (posted.many.take()) {
  }
  CHECK(posted.many.idle());
  Operation::of(later).finish(Status::kOk, 0);
}

TEST_CASE("a message longer than the room left is truncated, and uses up the buffer") {
  Posted posted(5);
  Request* part = posted.take(101);
  CHECK(Operation::of(*part).size == 100);
  CHECK(posted.matcher.posted() == 0);
  Posted::finish(*part, 100, 101);
  const auto told = posted.many.take();
  CHECK(told->status == Status::kTruncated);
  CHECK(told->length == 101);
  CHECK(told->bytes.size() == 100);
  CHECK(posted.many.status() == Status::kOk);
}

TEST_CASE("on_news is called for each message of a shared buffer, and for its end") {
  Posted posted(2);
  std::size_t news = 0;
  posted.many.user = &news;
  posted.many.on_news = [](MultiReceive& many) { ++*static_cast<std::size_t*>(many.user); };
  Request* first = posted.take(1);
  Posted::finish(*first, 1, 1);
  CHECK(news == 1);
  Request* last = posted.take(1);
  CHECK(news == 1);
  Posted::finish(*last, 1, 1);
  CHECK(news == 2);
  CHECK(posted.many.done());
}

}  // namespace pullman
