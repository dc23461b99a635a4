// Scenarios: sends and receives with options: spaces, immediate data, completion modes, segments,
// packers, claims, priority. They are the specification.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/operations.h"

namespace pullman::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Engines end before what they refer to, so the scene comes last.
struct Talk {
  Talk() {
    const auto couple = scene.couple(0, 1);
    there = couple.there;
    back = couple.back;
  }
  bool done(const Act& act) { return scene.run_until_done(act); }
  void lose_some() {
    for (WireFaults* wire : {&scene.network().wire(0, 1), &scene.network().wire(1, 0)}) {
      wire->loss = wire->duplicate = 100'000;
    }
  }

  Doings does{scene};
  Scene scene;
  PeerId there;
  PeerId back;
};

bool begins_with(const Act& act, const std::vector<std::byte>& bytes) {
  return act.request.length() <= bytes.size() &&
         std::equal(bytes.begin(), bytes.begin() + static_cast<long>(act.request.length()),
                    act.bytes.begin());
}

TEST_CASE("a message matches receives of its own space only") {
  Talk talk;
  const std::size_t size = GENERATE(10u, 50'000u);
  const bool posted_first = GENERATE(true, false);
  std::array<Act*, kSpaces> receives{};
  const auto post = [&] {
    for (std::uint8_t space = 0; space < kSpaces; ++space) {
      receives[space] = &talk.does.receive(1, talk.back, 1, size, {.space = space});
    }
  };
  if (posted_first) post();

  for (std::uint8_t space = kSpaces; space-- > 0;) {
    SendOptions options;
    options.space = space;
    talk.does.send(0, talk.there, 1, bytes_of(size, space), options);
  }
  talk.scene.run_for(milliseconds(20));
  for (std::uint8_t space = 0; space < kSpaces; ++space) {
    CHECK(talk.scene.engine(1).matching().probe(talk.back, 1, 0, space).has_value() ==
          !posted_first);
  }
  if (!posted_first) post();

  for (std::uint8_t space = 0; space < kSpaces; ++space) {
    REQUIRE(talk.done(*receives[space]));
    CHECK(receives[space]->bytes == bytes_of(size, space));
  }
}

TEST_CASE("unexpected messages are reported once each, in the order they came, by space") {
  Talk talk;
  engine::Engine& there = talk.scene.engine(1);
  const std::uint8_t space = GENERATE(0, 1, 20);
  const auto send = [&](Tag tag) {
    SendOptions options;
    options.space = space;
    if (tag % 2 == 0) options.immediate = tag;
    talk.does.send(0, talk.there, tag, bytes_of(tag == 14 ? 300'000 : 10, 1), options);
    talk.scene.run_for(milliseconds(20));
  };
  CHECK_FALSE(there.matching().next_unexpected(space));
  for (Tag tag = 11; tag <= 15; ++tag) send(tag);
  CHECK_FALSE(there.matching().next_unexpected(2));
  CHECK_FALSE(there.matching().next_unexpected(kSpaces));

  const auto first = there.matching().next_unexpected(space);
  REQUIRE(first);
  CHECK(first->tag == 11);
  CHECK(first->source == talk.back);
  CHECK(first->length == 10);
  CHECK_FALSE(first->immediate);
  // Removes one message that was reported, and one that was not.
  for (const Tag gone : {11u, 12u}) {
    REQUIRE(talk.done(talk.does.receive(1, talk.back, gone, 10, {.space = space})));
  }
  CHECK(there.matching().next_unexpected(space)->tag == 13);
  const auto large = there.matching().next_unexpected(space);
  CHECK(large->tag == 14);
  CHECK(large->length == 300'000);
  CHECK(large->immediate == 14u);
  REQUIRE(talk.done(talk.does.receive(1, talk.back, 15, 10, {.space = space})));
  CHECK_FALSE(there.matching().next_unexpected(space));
  send(17);
  CHECK(there.matching().next_unexpected(space)->tag == 17);
  CHECK_FALSE(there.matching().next_unexpected(space));
}

TEST_CASE("an undefined space is an invalid argument") {
  Talk talk;
  SendOptions options;
  options.space = kSpaces;

  CHECK(talk.does.send(0, talk.there, 1, bytes_of(4, 1), options).returned ==
        Status::kInvalidArgument);
  CHECK(talk.does.receive(1, talk.back, 1, 4, {.space = kSpaces}).returned ==
        Status::kInvalidArgument);
}

TEST_CASE("immediate data comes with the message, truncated or not, expected or not") {
  Talk talk;
  const std::size_t size = GENERATE(0u, 1u, 1000u, 1432u, 70'000u, 300'000u);
  const std::size_t capacity = GENERATE(0u, 10u, 300'000u);
  const bool posted_first = GENERATE(true, false);
  const bool lossy = GENERATE(false, true);
  if (lossy) talk.lose_some();
  SendOptions options;
  options.immediate = 0xFEDCBA9876543210;
  Act* receive = posted_first ? &talk.does.receive(1, talk.back, 7, capacity) : nullptr;
  Act& send = talk.does.send(0, talk.there, 7, bytes_of(size, 5), options);
  if (!posted_first) {
    talk.scene.run_for(milliseconds(20));
    const auto probed = talk.scene.engine(1).matching().probe(talk.back, 7, 0);
    CHECK((probed || lossy));
    if (probed) CHECK(probed->immediate == options.immediate);
    if (probed) CHECK(probed->length == size);
    receive = &talk.does.receive(1, talk.back, 7, capacity);
  }

  REQUIRE(talk.done(*receive));
  REQUIRE(talk.done(send));
  CHECK(send.request.length() == size);
  CHECK(receive->request.immediate() == options.immediate);
  CHECK(receive->status() == (size > capacity ? Status::kTruncated : Status::kOk));
  CHECK(receive->request.message_length() == size);
  CHECK(receive->request.length() == std::min(size, capacity));
  CHECK(begins_with(*receive, bytes_of(size, 5)));
}

TEST_CASE("a request that had immediate data has none of another operation without them") {
  Talk talk;
  SendOptions options;
  options.immediate = 1;
  Request request;
  std::vector<std::byte> buffer(8);
  const auto receive_into = [&] {
    talk.scene.engine(1).matching().receive(talk.scene.node(1).local_now(), talk.back, 1, 0, buffer,
                                            request);
    talk.scene.node(1).touched();
    REQUIRE(talk.scene.run_until([&] { return request.done(); }));
  };

  talk.does.send(0, talk.there, 1, bytes_of(8, 1), options);
  receive_into();
  CHECK(request.immediate() == 1u);
  SECTION("of a message without any") {
    talk.scene.send(0, talk.there, 1, 8);
    receive_into();
  }
  SECTION("of a send that is refused") {
    REQUIRE(talk.scene.engine(1).sending().submit(
                talk.scene.node(1).local_now(),
                {.peer = kAnyPeer, .tag = 1, .segments = {}, .options = {}},
                request) == Status::kUnknownPeer);
  }

  CHECK_FALSE(request.immediate());
}

TEST_CASE("a synchronous send is done only after it is matched and has arrived") {
  Talk talk;
  const std::size_t size = GENERATE(0u, 8u, 5000u, 300'000u);
  if (GENERATE(false, true)) talk.lose_some();
  SendOptions options;
  options.synchronous = true;

  Act& send = talk.does.send(0, talk.there, 7, bytes_of(size, 5), options);
  CHECK(send.returned == Status::kPending);
  talk.scene.run_for(seconds(1));
  CHECK_FALSE(send.done());
  Act& receive = talk.does.receive(1, talk.back, 7, size);

  REQUIRE(talk.done(receive));
  REQUIRE(talk.done(send));
  CHECK(send.status() == Status::kOk);
  CHECK(receive.bytes == bytes_of(size, 5));
  talk.scene.run_for(milliseconds(100));
  CHECK(talk.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE(
    "a synchronous message of a peer that has ended can be received, and leaves nothing behind") {
  Talk talk;
  SendOptions options;
  options.synchronous = true;
  talk.does.send(0, talk.there, 7, bytes_of(100, 5), options);
  talk.scene.run_for(milliseconds(20));
  talk.scene.restart(0);
  talk.scene.connect(0, 1);
  REQUIRE(talk.scene.run_until(
      [&] { return talk.scene.engine(1).inspector().peer_state(talk.back) == PeerState::kGone; },
      seconds(60)));

  Act& receive = talk.does.receive(1, talk.back, 7, 100);

  CHECK(receive.returned == Status::kOk);
  CHECK(receive.bytes == bytes_of(100, 5));
  CHECK(talk.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("a send until delivery is done when all of it has arrived, matched or not") {
  Talk talk;
  const std::size_t size = GENERATE(0u, 8u, 5000u);
  talk.scene.network().wire(0, 1).delay = milliseconds(5);
  SendOptions options;
  options.until_delivered = true;

  Act& send = talk.does.send(0, talk.there, 7, bytes_of(size, 5), options);

  CHECK(send.returned == Status::kPending);
  talk.scene.run_for(milliseconds(4));
  CHECK_FALSE(send.done());
  REQUIRE(talk.done(send));
  CHECK(send.status() == Status::kOk);
  CHECK(talk.scene.engine(1).matching().probe(talk.back, 7, 0));
}

TEST_CASE("a send of only a copy is copied at once, or nothing happens") {
  Talk talk;
  SendOptions options;
  options.only_copy = true;

  CHECK(talk.does.send(0, talk.there, 7, bytes_of(1000, 1), options).returned == Status::kOk);
  Act& long_one = talk.does.send(0, talk.there, 7, bytes_of(100'000, 2), options);
  CHECK(long_one.returned == Status::kBusy);
  CHECK(long_one.done());
  // Without room it is refused, and is not sent later either.
  std::size_t copied = 1;
  while (talk.does.send(0, talk.there, 7, bytes_of(1000, 1), options).returned == Status::kOk) {
    ++copied;
    REQUIRE(copied < 10'000);
  }
  std::size_t received = 0;
  for (;; ++received) {
    Act& receive = talk.does.receive(1, talk.back, 7, 2000);
    if (!talk.scene.run_until_done(receive, seconds(1))) {
      talk.scene.engine(1).matching().cancel(receive.request);
      break;
    }
  }
  CHECK(received == copied);
}

TEST_CASE("a copy keeps its space and its immediate data, with one segment and with two") {
  Talk talk;
  const auto space = static_cast<std::uint8_t>(GENERATE(0, 3));
  const bool two = GENERATE(false, true);
  SendOptions options;
  options.only_copy = true;
  options.space = space;
  options.immediate = 0x0123456789ABCDEF;
  const std::vector<std::byte> bytes = bytes_of(100, 1);
  const std::span<const std::byte> whole(bytes);
  const std::span<const std::byte> segments[] = {whole.first(two ? 40 : 100), whole.subspan(40)};
  Act& receive = talk.does.receive(1, talk.back, 7, 200, {.space = space});

  Request request;
  const Status status =
      talk.scene.engine(0).sending().submit(talk.scene.node(0).local_now(),
                                            {.peer = talk.there,
                                             .tag = 7,
                                             .segments = ConstSegments(segments, two ? 2 : 1),
                                             .options = options},
                                            request);
  talk.scene.node(0).touched();

  CHECK(status == Status::kOk);
  CHECK(request.status() == Status::kOk);
  CHECK(request.length() == 100);
  REQUIRE(talk.done(receive));
  CHECK(receive.request.immediate() == options.immediate);
  CHECK(receive.request.length() == 100);
  CHECK(begins_with(receive, bytes));
}

// Cuts `bytes` into segments, some of them empty.
template <typename Byte>
std::vector<std::span<Byte>> cut_into(std::span<Byte> bytes, std::size_t count) {
  std::vector<std::span<Byte>> segments;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t left = bytes.size() - at;
    const std::size_t length = i + 1 == count ? left
                               : i % 4 == 2   ? 0
                                              : std::min(left, left / (count - i) + i);
    segments.push_back(bytes.subspan(at, length));
    at += length;
  }
  return segments;
}

TEST_CASE("segments are gathered and scattered as if they were one") {
  Talk talk;
  const std::size_t size = GENERATE(0u, 5u, 900u, 6000u, 70'000u, 400'000u);
  const std::size_t from = GENERATE(1u, 2u, 7u, 16u);
  const std::size_t to = GENERATE(1u, 3u, 16u);
  if (GENERATE(false, true)) talk.lose_some();
  SendOptions options;
  if (GENERATE(false, true)) options.immediate = 9;
  const auto bytes = bytes_of(size, 6);
  std::vector<std::byte> buffer(size + 3);
  Request sent;
  Request received;
  const auto sources = cut_into(std::span<const std::byte>(bytes), from);
  const auto sinks = cut_into(std::span<std::byte>(buffer), to);

  talk.scene.engine(1).matching().submit(
      talk.scene.node(1).local_now(),
      {.source = talk.back, .tag = 3, .ignore = 0, .segments = sinks, .options = {}}, received);
  talk.scene.node(1).touched();
  talk.scene.engine(0).sending().submit(
      talk.scene.node(0).local_now(),
      {.peer = talk.there, .tag = 3, .segments = sources, .options = options}, sent);
  talk.scene.node(0).touched();
  const bool both = talk.scene.run_until([&] { return sent.done() && received.done(); });

  CHECK(both);
  CHECK(received.length() == size);
  CHECK(received.immediate() == options.immediate);
  CHECK(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
  if (!both) {
    talk.scene.restart(0);
    talk.scene.restart(1);
  }
}

TEST_CASE("more segments than the maximum are an invalid argument") {
  Talk talk;
  std::vector<std::byte> bytes(100);
  Request request;
  const auto segments = cut_into(std::span<const std::byte>(bytes), kMaxSegments + 1);
  const auto sinks = cut_into(std::span<std::byte>(bytes), kMaxSegments + 1);

  CHECK(talk.scene.engine(0).sending().submit(
            talk.scene.node(0).local_now(),
            {.peer = talk.there, .tag = 3, .segments = segments, .options = {}},
            request) == Status::kInvalidArgument);
  CHECK(talk.scene.engine(0).matching().submit(
            talk.scene.node(0).local_now(),
            {.source = talk.there, .tag = 3, .ignore = 0, .segments = sinks, .options = {}},
            request) == Status::kInvalidArgument);
}

// Every other byte of a matrix, packed on demand.
struct Strided {
  explicit Strided(std::size_t size) : matrix(bytes_of(2 * size, 4)) {}
  static void pack(void* user, std::uint64_t offset, std::span<std::byte> out) {
    auto& self = *static_cast<Strided*>(user);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = self.matrix[2 * (offset + i)];
    self.packed += out.size();
    self.longest = std::max(self.longest, out.size());
  }
  std::vector<std::byte> flat() const {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < matrix.size(); i += 2) bytes.push_back(matrix[i]);
    return bytes;
  }
  std::vector<std::byte> matrix;
  std::size_t packed = 0;
  std::size_t longest = 0;
};

TEST_CASE("a packed source arrives as the flattened one, and is packed packet by packet") {
  Talk talk;
  const std::size_t size = GENERATE(0u, 10u, 5000u, 300'000u);
  Strided strided(size);
  Act& receive = talk.does.receive(1, talk.back, 3, size);
  const Packer packer{&Strided::pack, &strided};
  Request sent;

  talk.scene.engine(0).sending().submit(
      talk.scene.node(0).local_now(),
      {.peer = talk.there, .tag = 3, .packer = &packer, .length = size, .options = {}}, sent);
  talk.scene.node(0).touched();

  REQUIRE(talk.scene.run_until([&] { return sent.done() && receive.done(); }));
  CHECK(receive.bytes == strided.flat());
  CHECK(strided.packed == size);
  CHECK(strided.longest <= 1472);
}

TEST_CASE("a length without a packer function is refused") {
  Talk talk;
  Request sent;
  const Packer nothing;
  engine::Engine& engine = talk.scene.engine(0);
  CHECK(engine.sending().submit(
            talk.scene.now(),
            {.peer = talk.there, .tag = 3, .packer = &nothing, .length = 10, .options = {}},
            sent) == Status::kInvalidArgument);
  CHECK(sent.status() == Status::kInvalidArgument);
  CHECK(engine.sending().submit(
            talk.scene.now(),
            {.peer = talk.there, .tag = 3, .packer = &nothing, .length = 0, .options = {}},
            sent) != Status::kInvalidArgument);
  REQUIRE(talk.scene.run_until([&] { return sent.done(); }));
}

TEST_CASE("an engine does not cancel a receive that was posted with another engine") {
  Talk talk;
  Request receive;
  std::array<std::byte, 8> bytes;
  const std::span<std::byte> segments[] = {bytes};
  CHECK(talk.scene.engine(1).matching().submit(talk.scene.now(),
                                               {.source = talk.back,
                                                .tag = 3,
                                                .ignore = 0,
                                                .segments = Segments(segments),
                                                .options = ReceiveOptions{.space = 5}},
                                               receive) == Status::kPending);
  CHECK_FALSE(talk.scene.engine(0).matching().cancel(receive));
  CHECK(talk.scene.engine(1).matching().cancel(receive));
}

TEST_CASE("a claimed message matches nothing else and is received by its claim") {
  Talk talk;
  const std::size_t size = GENERATE(10u, 5000u, 300'000u);
  talk.does.send(0, talk.there, 1, bytes_of(size, 1), {});
  talk.does.send(0, talk.there, 1, bytes_of(size, 2), {});
  talk.scene.run_for(milliseconds(20));

  const auto claimed = talk.scene.engine(1).matching().claim(talk.back, 1, 0);
  REQUIRE(claimed);
  CHECK(claimed->length == size);
  Act& second = talk.does.receive(1, talk.back, 1, size);
  REQUIRE(talk.done(second));
  Act& first = talk.does.receive_claimed(1, claimed->claimed, size);

  REQUIRE(talk.done(first));
  CHECK(first.bytes == bytes_of(size, 1));
  CHECK(second.bytes == bytes_of(size, 2));
  Act& again = talk.does.receive_claimed(1, claimed->claimed, size);
  CHECK(again.returned == Status::kInvalidArgument);
  CHECK(again.request.length() == 0);
  CHECK(talk.scene.engine(1).matching().discard(talk.scene.now(), claimed->claimed) ==
        Status::kInvalidArgument);
}

TEST_CASE("a discarded message is removed, its send is done, and nothing of it is kept") {
  Talk talk;
  const std::size_t size = GENERATE(10u, 5000u, 300'000u);
  SendOptions options;
  options.synchronous = true;
  Act& send = talk.does.send(0, talk.there, 1, bytes_of(size, 1), options);
  talk.scene.run_for(milliseconds(20));

  const auto claimed = talk.scene.engine(1).matching().claim(talk.back, 1, 0);
  REQUIRE(claimed);
  CHECK(talk.scene.engine(1).matching().discard(talk.scene.node(1).local_now(), claimed->claimed) ==
        Status::kOk);
  talk.scene.node(1).touched();

  REQUIRE(talk.done(send));
  talk.scene.run_for(milliseconds(20));
  CHECK(talk.scene.engine(1).inspector().audit().unexpected_bytes == 0);
}

TEST_CASE("when the peer ends, a claim of an incomplete message fails") {
  Talk talk;
  talk.does.send(0, talk.there, 1, bytes_of(300'000, 1), {});
  talk.scene.run_for(milliseconds(20));
  const auto claimed = talk.scene.engine(1).matching().claim(talk.back, 1, 0);
  REQUIRE(claimed);

  talk.scene.restart(0);
  talk.scene.connect(0, 1);
  REQUIRE(talk.scene.run_until(
      [&] { return talk.scene.engine(1).inspector().peer_state(talk.back) == PeerState::kGone; },
      seconds(60)));

  Act& receive = talk.does.receive_claimed(1, claimed->claimed, 300'000);
  CHECK(receive.done());
  CHECK(receive.status() != Status::kOk);
}

TEST_CASE("a priority message overtakes queued bulk") {
  Talk talk;
  talk.scene.network().wire(0, 1).ns_per_kib = 2000;
  talk.does.receive(1, talk.back, 1, 4 << 20);
  Act& plain = talk.does.receive(1, talk.back, 2, 500'000);
  Act& urgent = talk.does.receive(1, talk.back, 3, 500'000);
  talk.does.send(0, talk.there, 1, bytes_of(4 << 20, 1), {});
  talk.does.send(0, talk.there, 2, bytes_of(500'000, 2), {});
  SendOptions options;
  options.priority = true;
  talk.scene.run_for(milliseconds(1));

  talk.does.send(0, talk.there, 3, bytes_of(500'000, 3), options);

  REQUIRE(talk.done(urgent));
  CHECK_FALSE(plain.done());
}

TEST_CASE("on_done is called once for each request that is done") {
  Talk talk;
  static int told = 0;
  told = 0;
  std::array<Act, 6> acts;
  for (Act& act : acts) {
    act.bytes.resize(5000);
    act.request.on_done = [](Request& request) { told += request.done() ? 1 : 100; };
  }
  for (std::size_t i = 0; i < 3; ++i) {
    talk.scene.engine(1).matching().receive(talk.scene.node(1).local_now(), talk.back, i, 0,
                                            acts[i].bytes, acts[i].request);
    talk.scene.engine(0).sending().send(talk.scene.node(0).local_now(), talk.there, i,
                                        acts[i + 3].bytes, acts[i + 3].request);
  }
  talk.scene.node(0).touched();
  talk.scene.node(1).touched();

  CHECK(talk.scene.run_until([&] { return told == 6; }));
  talk.scene.restart(0);
  talk.scene.restart(1);
}

}  // namespace
}  // namespace pullman::sim
