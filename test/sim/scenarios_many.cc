// Scenarios: one buffer for many messages (MultiReceive). They are the specification.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "message/multi_receive.h"
#include "sim/operations.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Engines end before what they refer to, so the scene comes after the buffer.
struct Shared {
  explicit Shared(std::size_t size, std::size_t most = 64, std::size_t least_room = 1)
      : buffer(size), many(most, least_room) {
    const auto couple = scene.couple(0, 1);
    there = couple.there;
    back = couple.back;
  }
  Status post(PeerId source = kAnyPeer, Tag tag = 1) {
    const Status status = scene.engine(1).matching().submit(
        scene.node(1).local_now(), {.source = source, .tag = tag, .ignore = 0, .options = {}},
        buffer, many);
    scene.node(1).touched();
    return status;
  }
  Act& send(std::size_t size, unsigned salt, Tag tag = 1) {
    return does.send(0, there, tag, bytes_of(size, salt), {});
  }
  // Checks that the next message is `size` bytes of that salt; returns its offset.
  std::size_t expect(std::size_t size, unsigned salt) {
    REQUIRE(scene.run_until([&] { return many.has_message(); }));
    const auto message = many.take();
    CHECK(message->status == Status::kOk);
    CHECK(message->source == back);
    CHECK(std::vector(message->bytes.begin(), message->bytes.end()) == bytes_of(size, salt));
    return static_cast<std::size_t>(message->bytes.data() - buffer.data());
  }

  Doings does{scene};
  std::vector<std::byte> buffer;
  MultiReceive many;
  Scene scene;
  PeerId there;
  PeerId back;
};

TEST_CASE("many messages fill one buffer in the order they were sent, posted before or after") {
  const bool posted_first = GENERATE(true, false);
  const bool lossy = GENERATE(true, false);
  const std::vector<std::size_t> sizes{0, 8, 100'000, 1, 3000, 300'000, 0, 17};
  Shared shared(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), sizes.size());
  if (lossy) shared.scene.network().wire(0, 1).loss = 50'000;
  if (posted_first) CHECK(shared.post() == Status::kPending);

  for (unsigned i = 0; i < sizes.size(); ++i) shared.send(sizes[i], i);
  if (!posted_first) {
    shared.scene.run_for(milliseconds(50));
    shared.post();
  }
  REQUIRE(shared.scene.run_until([&] { return shared.many.done(); }));

  CHECK(shared.many.status() == Status::kOk);
  std::vector<std::byte> all;
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const auto bytes = bytes_of(sizes[i], i);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  CHECK(shared.buffer == all);
  std::size_t told = 0;
  while (const auto message = shared.many.take()) {
    CHECK(message->status == Status::kOk);
    ++told;
  }
  CHECK(told == sizes.size());
}

TEST_CASE("a short message is reported while a long one before it is still arriving") {
  Shared shared(2'000'100);
  shared.scene.network().wire(0, 1).ns_per_kib = 8000;
  shared.post();
  shared.send(2'000'000, 1);
  shared.scene.run_for(milliseconds(1));
  shared.send(5, 2);
  CHECK(shared.expect(5, 2) == 2'000'000);
  CHECK(shared.expect(2'000'000, 1) == 0);
}

TEST_CASE("a message that a shared buffer has no room for takes the next receive") {
  Shared shared(100, 64, 50);
  shared.post();
  Act& next = shared.does.receive(1, shared.back, 1, 1000);
  shared.send(40, 1);
  shared.send(11, 2);
  shared.send(70, 3);
  CHECK(shared.expect(40, 1) == 0);
  CHECK(shared.expect(11, 2) == 40);
  REQUIRE(shared.scene.run_until_done(next));
  CHECK(next.request.length() == 70);
  CHECK(shared.many.status() == Status::kOk);

  CHECK(shared.post() == Status::kPending);  // a second time
  shared.send(60, 4);
  CHECK(shared.expect(60, 4) == 0);
  CHECK(shared.many.done());
}

TEST_CASE("a shared buffer cannot be posted again before its messages are taken") {
  Shared shared(10, 1);
  shared.post();
  CHECK(shared.post() == Status::kBusy);
  shared.send(4, 1);
  REQUIRE(shared.scene.run_until([&] { return shared.many.done(); }));
  CHECK(shared.post() == Status::kBusy);
  shared.expect(4, 1);
  CHECK(shared.post() == Status::kPending);
  shared.scene.engine(1).matching().cancel(MultiReceive::State::of(shared.many).posted());
}

TEST_CASE("a cancelled shared buffer keeps what has matched, and takes no more") {
  Shared shared(400'000);
  shared.post();
  shared.send(300'000, 1);
  shared.scene.run_for(milliseconds(1));
  CHECK(shared.scene.engine(1).matching().cancel(MultiReceive::State::of(shared.many).posted()));
  shared.send(4, 2);
  shared.expect(300'000, 1);
  REQUIRE(shared.scene.run_until([&] { return shared.many.done(); }));
  CHECK(shared.many.status() == Status::kCancelled);
  CHECK(shared.scene.run_until(
      [&] { return shared.scene.engine(1).matching().probe(shared.back, 1, 0).has_value(); }));
}

TEST_CASE("a shared buffer for a peer that ends finishes with the reason, and so do its messages") {
  Shared shared(4'000'000);
  shared.scene.network().wire(0, 1).ns_per_kib = 8000;
  CHECK(shared.post(shared.back) == Status::kPending);
  shared.send(3, 1);
  shared.expect(3, 1);
  shared.send(3'000'000, 2);
  shared.scene.run_for(milliseconds(1));
  shared.scene.engine(1).disconnect(shared.scene.node(1).local_now(), shared.back);
  shared.scene.network().wire(0, 1).loss = 1'000'000;

  REQUIRE(shared.scene.run_until([&] { return shared.many.done(); }, seconds(100)));
  const auto cut_off = shared.many.take();
  REQUIRE(cut_off);
  CHECK(cut_off->status != Status::kOk);
  CHECK(cut_off->bytes.empty());
  CHECK(shared.many.status() != Status::kOk);
}

TEST_CASE("a shared buffer smaller than the least room it asks for is an invalid argument") {
  Shared shared(10, 4, 11);
  CHECK(shared.post() == Status::kInvalidArgument);
  CHECK(shared.many.idle());
}

TEST_CASE("immediate data comes with each message of a shared buffer, but not within it") {
  Shared shared(20);
  shared.post();
  SendOptions options;
  options.immediate = 77;
  shared.does.send(0, shared.there, 1, bytes_of(5, 1), options);
  REQUIRE(shared.scene.run_until([&] { return shared.many.has_message(); }));
  const auto message = shared.many.take();
  CHECK(message->immediate == 77);
  CHECK(message->bytes.size() == 5);
  shared.send(6, 2);
  CHECK(shared.expect(6, 2) == 5);
  CHECK(std::vector(message->bytes.begin(), message->bytes.end()) == bytes_of(5, 1));
}

}  // namespace
}  // namespace pullman::sim
