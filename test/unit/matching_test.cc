// message/rx/range_set.h, id_window.h, matcher.h: against models that are too simple to be wrong.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "base/random.h"
#include "message/id_window.h"
#include "message/match/matcher.h"
#include "message/rx/in_message.h"
#include "message/rx/range_set.h"

namespace pullman::message {

TEST_CASE("ranges in any order, repeated and overlapping, are remembered exactly") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::pmr::monotonic_buffer_resource memory;
    RangeSet set(&memory);
    std::vector<bool> model(200);
    while (set.prefix() < model.size()) {
      const std::uint64_t begin = random.below(model.size());
      const std::uint64_t end = std::min<std::uint64_t>(model.size(), begin + 1 + random.below(30));
      const bool fresh =
          !std::all_of(model.begin() + static_cast<long>(begin),
                       model.begin() + static_cast<long>(end), [](bool b) { return b; });
      const auto added = set.add({begin, end});
      REQUIRE((added == RangeSet::Added::kNew) == fresh);
      std::fill(model.begin() + static_cast<long>(begin), model.begin() + static_cast<long>(end),
                true);
      std::vector<bool> said(model.size());
      set.for_each([&](Range range) {
        REQUIRE(range.begin < range.end);
        std::fill(said.begin() + static_cast<long>(range.begin),
                  said.begin() + static_cast<long>(range.end), true);
      });
      REQUIRE(said == model);
    }
  }
}

TEST_CASE("a range set has room for a number of gaps and refuses one more until some close") {
  std::pmr::monotonic_buffer_resource memory;
  RangeSet set(&memory);
  for (std::uint64_t i = 1; i <= RangeSet::kMaxRanges; ++i) {
    REQUIRE(set.add({i * 10, i * 10 + 1}) == RangeSet::Added::kNew);
  }
  CHECK(set.add({5, 6}) == RangeSet::Added::kRefused);
  CHECK(set.add({10, 20}) == RangeSet::Added::kNew);  // joins two ranges
  CHECK(set.add({5, 6}) == RangeSet::Added::kNew);
}

TEST_CASE("ids finish in any order; the window remembers which, across the wrap") {
  Pool<IdBitmap> pool(1);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    IdWindow window;
    const MessageId first = (MessageId{1} << 32) - 100;
    window.start(first);
    std::vector<bool> done(9000);
    while (window.floor() < first + 4000) {
      const MessageId id = window.floor() + random.below(kIdWindow);
      if (window.finished(id)) continue;
      REQUIRE_FALSE(done[id - first]);
      window.finish(id, pool);
      done[id - first] = true;
      if (random.chance(600'000) && !window.finished(window.floor())) {
        done[window.floor() - first] = true;
        window.finish(window.floor(), pool);
      }
      for (MessageId n = window.floor(); n < window.floor() + 64; ++n) {
        REQUIRE(window.finished(n) == done[n - first]);
      }
    }
    CHECK(window.finished(first));
    CHECK_FALSE(window.contains(window.floor() - 1));
    CHECK(window.contains(window.floor() + kIdWindow - 1));
    CHECK_FALSE(window.contains(window.floor() + kIdWindow));
  }
  CHECK(pool.in_use() == 0);
}

TEST_CASE("a range set remembers as many ranges as it is told to, and allocates nothing for more") {
  for (const std::size_t most : {1u, 2u, 5u, 9u, 100u}) {
    std::array<std::byte, 8192> room;
    std::pmr::monotonic_buffer_resource memory(room.data(), room.size(),
                                               std::pmr::null_memory_resource());
    RangeSet set(&memory);
    for (std::uint64_t i = 1; i <= most; ++i) {
      REQUIRE(set.add({i * 10, i * 10 + 1}, most) == RangeSet::Added::kNew);
    }
    CHECK(set.add({5, 6}, most) == RangeSet::Added::kRefused);
    CHECK(set.add({11, 12}, most) == RangeSet::Added::kNew);  // joins one range
    CHECK(set.add({0, 5}, most) == RangeSet::Added::kNew);    // extends the prefix
  }
}

TEST_CASE("ids that finish in order take no memory") {
  Pool<IdBitmap> none(0);
  IdWindow window;
  const MessageId first = (MessageId{1} << 32) - 100;
  window.start(first);
  for (MessageId id = first; id < first + 10'000; ++id) {
    REQUIRE_FALSE(window.finished(id));
    window.finish(id, none);
    REQUIRE(window.finished(id));
  }
  CHECK(window.floor() == first + 10'000);
}

namespace {

constexpr PeerId kAlice{0, 1};
constexpr PeerId kBob{1, 1};

void want(Request& request, PeerId source, Tag tag, Tag ignore) {
  Operation& op = Operation::of(request);
  op.begin(Operation::Kind::kReceive, source, tag);
  op.ignore = ignore;
}

}  // namespace

TEST_CASE("of the receives that fit a message, the earliest posted is taken") {
  Matcher matcher;
  Request wild;
  Request exact;
  want(wild, kAnyPeer, 0, ~Tag{0});
  want(exact, kAlice, 7, 0);

  SECTION("the wildcard was first") {
    matcher.find_or_post(wild);
    matcher.find_or_post(exact);
    CHECK(matcher.take_posted(kAlice, 7, 0) == &wild);
    CHECK(matcher.take_posted(kAlice, 7, 0) == &exact);
  }
  SECTION("the exact one was first") {
    matcher.find_or_post(exact);
    matcher.find_or_post(wild);
    CHECK(matcher.take_posted(kAlice, 7, 0) == &exact);
    CHECK(matcher.take_posted(kBob, 9, 0) == &wild);
  }
  CHECK(matcher.take_posted(kAlice, 7, 0) == nullptr);
  CHECK(matcher.posted() == 0);
  Operation::of(wild).finish(Status::kCancelled, 0);
  Operation::of(exact).finish(Status::kCancelled, 0);
}

namespace {

// Returns few bits, as of an MPI library's protocol, other ones of those, or more bits than the
// hash leaves out.
Tag ignored_by_some(Random& random) {
  constexpr Tag kProtocol = Tag{3} << 40;
  switch (random.below(4)) {
    case 0:
      return kProtocol;
    case 1:
      return random.below(4);
    case 2:
      return kProtocol | random.below(4);
    default:
      return ~Tag{0} << random.below(42);
  }
}

}  // namespace

TEST_CASE("matching agrees with a list that is searched from the front") {
  struct Post {
    Want want;
    Request* request;
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Matcher matcher;
    std::deque<std::unique_ptr<Request>> requests;
    std::vector<std::unique_ptr<InMessage>> messages;
    std::vector<Post> posted;
    std::vector<Unexpected*> arrived;
    std::pmr::monotonic_buffer_resource memory;
    for (int i = 0; i < 500; ++i) {
      const PeerId peer = random.chance(500'000) ? kAlice : kBob;
      const Tag tag = random.below(4) | random.below(2) << 40;
      if (random.chance(500'000)) {  // a message's turn comes
        const auto fits = std::find_if(posted.begin(), posted.end(),
                                       [&](const Post& p) { return p.want.fits(peer, tag); });
        Request* taken = matcher.take_posted(peer, tag, 0);
        REQUIRE(taken == (fits == posted.end() ? nullptr : fits->request));
        if (taken != nullptr) {
          posted.erase(fits);
          Operation::of(*taken).finish(Status::kOk, 0);
          continue;
        }
        auto message = std::make_unique<InMessage>(&memory);
        message->peer = peer;
        message->tag = tag;
        matcher.add(*message);
        arrived.push_back(message.get());
        messages.push_back(std::move(message));
      } else {  // a receive is posted
        const Want what{random.chance(300'000) ? kAnyPeer : peer, tag,
                        random.chance(300'000) ? ignored_by_some(random) : 0};
        const auto fits = std::find_if(arrived.begin(), arrived.end(), [&](const Unexpected* m) {
          return what.fits(m->peer, m->tag);
        });
        Unexpected* const expected = fits == arrived.end() ? nullptr : *fits;
        REQUIRE(matcher.find(what) == expected);
        requests.push_back(std::make_unique<Request>());
        want(*requests.back(), what.source, what.tag, what.ignore);
        REQUIRE(matcher.find_or_post(*requests.back()) == expected);
        if (expected != nullptr) {
          REQUIRE(matcher.posted() == posted.size());
          matcher.remove(*expected);
          arrived.erase(fits);
          Operation::of(*requests.back()).finish(Status::kCancelled, 0);
          requests.pop_back();
          continue;
        }
        posted.push_back({what, requests.back().get()});
      }
    }
    REQUIRE(matcher.posted() == posted.size());
    for (const Post& post : posted) {
      matcher.remove(*post.request);
      Operation::of(*post.request).finish(Status::kCancelled, 0);
    }
    for (Unexpected* message : arrived) matcher.remove(*message);
  }
}

}  // namespace pullman::message
