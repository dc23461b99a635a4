// The matcher: posted receives and unexpected messages, few and many.
#include <memory>
#include <memory_resource>
#include <vector>

#include "base/check.h"
#include "message/match/matcher.h"
#include "message/rx/in_message.h"
#include "micro/run.h"

namespace pullman::bench {
namespace {

using namespace message;

constexpr PeerId kPeer{3, 1};

void want(Request& request, PeerId source, Tag tag) {
  Operation& op = Operation::of(request);
  op.begin(Operation::Kind::kReceive, source, tag);
  op.ignore = 0;
}

// kPosted receives with tags of their own, from one peer or any; the oldest is matched and posted
// anew.
template <std::size_t kPosted, bool kNamed>
void post_and_take(benchmark::State& state) {
  const PeerId source = kNamed ? kPeer : kAnyPeer;
  Matcher matcher;
  std::vector<Request> requests(kPosted);
  for (std::size_t i = 0; i < kPosted; ++i) {
    want(requests[i], source, i);
    matcher.find_or_post(requests[i]);
  }
  std::size_t next = 0;
  for (auto _ : state) {
    Request* taken = matcher.take_posted(kPeer, next, 0);
    PULLMAN_CHECK(taken == &requests[next]);
    Operation::of(*taken).finish(Status::kOk, 0);
    want(*taken, source, next);
    matcher.find_or_post(*taken);
    next = (next + 1) % kPosted;
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
  for (Request& request : requests) {
    matcher.remove(request);
    Operation::of(request).finish(Status::kCancelled, 0);
  }
}

// 1000 receives from anybody stand before the one that is matched, and fit nothing.
void behind_1000_wild(benchmark::State& state) {
  Matcher matcher;
  std::vector<Request> wild(1000);
  Request exact;
  for (Request& request : wild) {
    want(request, kAnyPeer, 1);
    matcher.find_or_post(request);
  }
  for (auto _ : state) {
    want(exact, kPeer, 2);
    matcher.find_or_post(exact);
    PULLMAN_CHECK(matcher.take_posted(kPeer, 2, 0) == &exact);
    Operation::of(exact).finish(Status::kOk, 0);
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
  for (Request& request : wild) {
    matcher.remove(request);
    Operation::of(request).finish(Status::kCancelled, 0);
  }
}

// kWaiting unexpected messages with tags of their own; the oldest is found, and another comes. Or
// the newest, in all but some bits, as MPI libraries ask.
template <std::size_t kWaiting, bool kNamed, bool kNewest = false>
void find_unexpected(benchmark::State& state) {
  Matcher matcher;
  std::pmr::unsynchronized_pool_resource memory;
  std::vector<std::unique_ptr<InMessage>> messages;
  for (std::size_t i = 0; i < kWaiting; ++i) {
    messages.push_back(std::make_unique<InMessage>(&memory));
    messages.back()->peer = kPeer;
    messages.back()->tag = i;
    matcher.add(*messages.back());
  }
  std::size_t next = 0;
  for (auto _ : state) {
    constexpr Tag kIgnored = kNewest ? Tag{3} << 60 : 0;
    Unexpected* found = matcher.find({kNamed ? kPeer : kAnyPeer, next, kIgnored});
    PULLMAN_CHECK(found == messages[next].get());
    matcher.remove(*found);
    matcher.add(*found);
    next = (next + (kNewest ? kWaiting - 1 : 1)) % kWaiting;
  }
  count_items(state, static_cast<std::uint64_t>(state.iterations()));
  for (auto& message : messages) matcher.remove(*message);
}

}  // namespace
}  // namespace pullman::bench

int main(int argc, char** argv) {
  using namespace pullman::bench;
  return run(argc, argv,
             {{"matcher/posted_1", post_and_take<1, true>},
              {"matcher/posted_1000", post_and_take<1000, true>},
              {"matcher/posted_wild_1000", post_and_take<1000, false>},
              {"matcher/behind_1000_wild", behind_1000_wild},
              {"matcher/unexpected_1", find_unexpected<1, true>},
              {"matcher/unexpected_1000", find_unexpected<1000, true>},
              {"matcher/unexpected_wild_1000", find_unexpected<1000, false>},
              {"matcher/unexpected_newest_1000", find_unexpected<1000, true, true>}});
}
