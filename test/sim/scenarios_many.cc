// Scenarios: receives that take many messages. They are the specification: read them so.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/doings.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Host 1 takes what host 0 sends, under tag 1, into one buffer.
struct Table {
  explicit Table(std::size_t size = 100'000, std::size_t least_room = 1000) : buffer(size) {
    const auto couple = scene.couple(0, 1);
    there = couple.there;
    back = couple.back;
    least = least_room;
  }
  Status post(PeerId source, Request& request) {
    request.user = &landed;
    request.on_message = [](Request& one, const Landed& message) {
      static_cast<std::vector<Landed>*>(one.user)->push_back(message);
    };
    const std::span<std::byte> whole[] = {buffer};
    const Status status = scene.engine(1).receive(scene.node(1).local_now(), source, 1, 0, whole,
                                                  {.space = 0, .least_room = least}, request);
    scene.node(1).touched();
    return status;
  }
  Act& send(std::size_t size, unsigned salt, const SendOptions& options = {}) {
    return does.send(0, there, 1, bytes_of(size, salt), options);
  }
  bool holds(const Landed& message, std::size_t size, unsigned salt) const {
    const auto expected = bytes_of(size, salt);
    return message.status == Status::kOk && message.length == size &&
           message.message_length == size && message.source == back && message.tag == 1 &&
           std::equal(expected.begin(), expected.end(),
                      buffer.begin() + static_cast<long>(message.offset));
  }
  bool wait_for(std::size_t messages) {
    return scene.run_until([&] { return landed.size() >= messages; });
  }

  std::vector<std::byte> buffer;
  std::vector<Landed> landed;
  Request many;
  Doings does{scene};
  Scene scene;
  PeerId there;
  PeerId back;
  std::size_t least = 0;
};

}  // namespace

TEST_CASE("messages land one behind the other, until too little room is left") {
  const std::size_t size = GENERATE(0u, 10u, 1200u, 30'000u);
  const bool posted_first = GENERATE(true, false);
  const std::size_t count = size == 0 ? 50 : (100'000 - 1000) / size + 1;
  Table table;
  if (posted_first) REQUIRE(table.post(table.back, table.many) == Status::kPending);

  for (unsigned i = 0; i < count; ++i) table.send(size, i);
  if (!posted_first) {
    table.scene.run_for(milliseconds(20));
    table.post(table.back, table.many);
  }

  REQUIRE(table.wait_for(count));
  for (unsigned i = 0; i < count; ++i) {
    const auto at = std::find_if(table.landed.begin(), table.landed.end(),
                                 [&](const Landed& one) { return one.offset == i * size; });
    REQUIRE(at != table.landed.end());
    CHECK(table.holds(*at, size, size == 0 ? 0 : i));
  }
  CHECK(table.many.done() == (size != 0));
  if (size == 0) {
    CHECK(table.scene.engine(1).cancel(table.many));
  } else {
    CHECK(table.many.status() == Status::kOk);
    CHECK(table.many.length() == count * size);
  }
}

TEST_CASE("a message for which too little is left goes to the next receive") {
  const bool posted_first = GENERATE(true, false);
  Table table(10'000, 1);
  if (posted_first) table.post(table.back, table.many);
  Act* next = posted_first ? &table.does.receive(1, table.back, 1, 6000) : nullptr;

  table.send(6000, 1);
  table.send(6000, 2);
  if (!posted_first) {
    table.scene.run_for(milliseconds(20));
    table.post(table.back, table.many);
    next = &table.does.receive(1, table.back, 1, 6000);
  }

  REQUIRE(table.scene.run_until_done(*next));
  CHECK(next->bytes == bytes_of(6000, 2));
  REQUIRE(table.wait_for(1));
  CHECK(table.holds(table.landed[0], 6000, 1));
  CHECK(table.many.status() == Status::kOk);
  CHECK(table.many.length() == 6000);
}

TEST_CASE("a message longer than the whole buffer is cut to it") {
  const std::size_t size = GENERATE(1400u, 500'000u);
  Table table(1000, 1000);
  table.post(table.back, table.many);

  table.send(size, 1);

  REQUIRE(table.wait_for(1));
  CHECK(table.landed[0].status == Status::kTruncated);
  CHECK(table.landed[0].length == 1000);
  CHECK(table.landed[0].message_length == size);
  CHECK(table.many.status() == Status::kOk);
  const auto bytes = bytes_of(size, 1);
  CHECK(std::equal(table.buffer.begin(), table.buffer.end(), bytes.begin()));
}

TEST_CASE("long messages land side by side, each told once, with what came beside it") {
  Table table(1'000'000, 1000);
  for (WireFaults* wire : {&table.scene.network().wire(0, 1), &table.scene.network().wire(1, 0)}) {
    wire->loss = wire->duplicate = 100'000;
  }
  const PeerId source = GENERATE_COPY(table.back, kAnyPeer);
  table.post(source, table.many);

  for (unsigned i = 0; i < 5; ++i) {
    SendOptions options;
    options.immediate = 70 + i;
    table.send(200'000, i, options);
  }

  REQUIRE(table.wait_for(5));
  CHECK(table.many.done());
  for (const Landed& message : table.landed) {
    const auto i = static_cast<unsigned>(message.offset / 200'000);
    CHECK(table.holds(message, 200'000, i));
    CHECK(message.immediate == 70 + i);
  }
}

TEST_CASE("one that is taken back is done when what is landing has landed") {
  Table table(1'000'000, 1000);
  table.post(kAnyPeer, table.many);
  table.send(900'000, 1);
  REQUIRE(table.scene.run_until([&] { return table.many.operation().sent != 0; }));

  CHECK(table.scene.engine(1).cancel(table.many));
  CHECK_FALSE(table.many.done());
  CHECK_FALSE(table.scene.engine(1).cancel(table.many));

  REQUIRE(table.wait_for(1));
  CHECK(table.holds(table.landed[0], 900'000, 1));
  CHECK(table.many.status() == Status::kCancelled);
}

TEST_CASE("a message whose sender dies is told with that, and others land after it") {
  Table table(1'000'000, 1000);
  table.post(kAnyPeer, table.many);
  table.send(900'000, 1);
  REQUIRE(table.scene.run_until([&] { return table.many.operation().sent != 0; }));

  table.scene.restart(0);
  const PeerId again = table.scene.connect(0, 1);
  Act& sent = table.does.send(0, again, 1, bytes_of(500, 2), {});
  REQUIRE(table.scene.run_until_done(sent));

  REQUIRE(table.wait_for(2));
  CHECK(table.landed[0].status != Status::kOk);
  CHECK(table.landed[0].length == 0);
  CHECK(table.landed[1].status == Status::kOk);
  CHECK(table.landed[1].offset == 900'000);
  CHECK_FALSE(table.many.done());
  CHECK(table.scene.engine(1).cancel(table.many));
  CHECK(table.many.status() == Status::kCancelled);
}

TEST_CASE("a receive of many that cannot be is refused") {
  Table table(1000, 1001);

  CHECK(table.post(table.back, table.many) == Status::kInvalidArgument);
  table.least = 1000;
  Request deaf;
  const std::span<std::byte> whole[] = {table.buffer};
  CHECK(table.scene.engine(1).receive(table.scene.now(), table.back, 1, 0, whole,
                                      {.space = 0, .least_room = 10},
                                      deaf) == Status::kInvalidArgument);
}

}  // namespace pullman::sim
