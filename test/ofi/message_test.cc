// Messages without tags, immediate data, flags, multi-receive buffers, and peeks.
#include <random>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kCaps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;

struct MessagePair : Pair {
  explicit MessagePair(std::uint64_t bind_flags = 0)
      : Pair({.caps = kCaps, .bind_flags = bind_flags}) {}

  void send(std::vector<char> bytes) {
    const auto& stays = keep(std::move(bytes));
    MUST(fi_send(a->endpoint.get(), stays.data(), stays.size(), nullptr, to_b, nullptr));
  }
  void receive(std::span<char> buffer, void* with) const {
    MUST(fi_recv(b->endpoint.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, with));
  }
  // Posts it as a multi-receive buffer.
  void share(std::span<char> buffer, void* with) const {
    const iovec piece{buffer.data(), buffer.size()};
    fi_msg wanted{};
    wanted.msg_iov = &piece;
    wanted.iov_count = 1;
    wanted.addr = FI_ADDR_UNSPEC;
    wanted.context = with;
    MUST(fi_recvmsg(b->endpoint.get(), &wanted, FI_MULTI_RECV));
  }
};

}  // namespace

TEST_CASE("messages without tags match in the order they were sent, independently of tagged ones") {
  const auto first = content(100, 1), second = content(2000, 2), tagged = content(50, 3);
  MessagePair pair;
  std::vector<char> one(2000), other(2000), third(2000);
  MUST(fi_tsend(pair.a->endpoint.get(), tagged.data(), 50, nullptr, pair.to_b, 0, nullptr));
  pair.send(first);
  pair.send(second);

  pair.receive(one, &op_contexts[0]);
  pair.receive(other, &op_contexts[1]);
  MUST(fi_trecv(pair.b->endpoint.get(), third.data(), 2000, nullptr, pair.to_a, 0, ~0ULL,
                &op_contexts[2]));

  std::array<std::size_t, 3> lengths{};
  for (int i = 0; i < 3; ++i) {
    const Said said = pair.next(*pair.b);
    const auto which = static_cast<int*>(said.entry.op_context) - op_contexts;
    lengths[which] = said.entry.len;
    CHECK(said.entry.flags == (FI_RECV | (which == 2 ? FI_TAGGED : FI_MSG)));
  }
  CHECK(lengths == std::array<std::size_t, 3>{100, 2000, 50});
  CHECK(std::equal(first.begin(), first.end(), one.begin()));
  CHECK(other == second);
}

TEST_CASE("immediate data comes with a message, tagged or not, injected or not, truncated or not") {
  MessagePair pair;
  fid_ep* from = pair.a->endpoint.get();
  const auto bytes = content(100, 1);
  std::vector<char> buffer(100);
  constexpr std::uint64_t kData = 0xFEDCBA9876543210;
  MUST(fi_senddata(from, bytes.data(), 100, nullptr, kData, pair.to_b, nullptr));
  MUST(fi_injectdata(from, bytes.data(), 100, kData + 1, pair.to_b));
  pair.receive(buffer, nullptr);
  pair.receive(std::span(buffer).first(10), nullptr);

  const Said whole = pair.next(*pair.b), cut = pair.next(*pair.b);
  CHECK(whole.entry.flags == (FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA));
  CHECK(whole.entry.data == kData);
  CHECK(cut.entry.err == FI_ETRUNC);
  CHECK(cut.entry.data == kData + 1);
  CHECK(cut.entry.olen == 90);

  MUST(fi_tsenddata(from, bytes.data(), 100, nullptr, kData + 2, pair.to_b, 7, nullptr));
  MUST(fi_tinjectdata(from, bytes.data(), 100, kData + 3, pair.to_b, 7));
  for (const std::uint64_t data : {kData + 2, kData + 3}) {
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 100, nullptr, pair.to_a, 7, 0, nullptr));
    const Said said = pair.next(*pair.b);
    CHECK(said.entry.flags == (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA));
    CHECK(said.entry.data == data);
    CHECK(said.entry.tag == 7);
  }
}

TEST_CASE("a message is gathered from sixteen segments and scattered to as many") {
  auto bytes = content(1600, 1);
  std::vector<char> buffer(1600);
  MessagePair pair;
  std::array<iovec, 17> from{}, to{};
  for (std::size_t i = 0; i < 16; ++i) {
    from[i] = {&bytes[i * 100], 100};
    to[i] = {&buffer[i * 100], 100};
  }

  MUST(fi_recvv(pair.b->endpoint.get(), to.data(), nullptr, 16, FI_ADDR_UNSPEC, nullptr));
  MUST(fi_sendv(pair.a->endpoint.get(), from.data(), nullptr, 16, pair.to_b, nullptr));

  CHECK(pair.next(*pair.b).entry.len == 1600);
  CHECK(buffer == bytes);
  CHECK(fi_sendv(pair.a->endpoint.get(), from.data(), nullptr, 17, pair.to_b, nullptr) ==
        -FI_EINVAL);
}

TEST_CASE(
    "segments have any length, empty ones among them, and differ between sender and receiver") {
  MessagePair pair;
  std::minstd_rand random(1);
  const auto cut = [&](std::vector<char>& bytes, std::size_t count) {
    std::vector<iovec> segments;
    std::size_t at = 0;
    for (std::size_t i = 1; i <= count; ++i) {
      const std::size_t left = bytes.size() - at;
      const std::size_t length =
          i == count ? left
                     : std::min<std::size_t>(left, random() % (2 * bytes.size() / count + 1));
      segments.push_back({bytes.data() + at, length});
      at += length;
    }
    return segments;
  };
  for (const std::size_t size : {0, 1, 5, 16, 300, 1024, 5000, 65536, 100000, 1 << 20}) {
    for (std::size_t count = 1; count <= 16; ++count) {
      INFO(size << " bytes in " << count << " segments");
      auto bytes = content(size, static_cast<int>(count));
      std::vector<char> buffer(size);
      const auto from = cut(bytes, count), to = cut(buffer, 17 - count);
      MUST(
          fi_recvv(pair.b->endpoint.get(), to.data(), nullptr, to.size(), FI_ADDR_UNSPEC, nullptr));
      MUST(fi_sendv(pair.a->endpoint.get(), from.data(), nullptr, from.size(), pair.to_b, nullptr));
      CHECK_FALSE(pair.next(*pair.a).error);
      CHECK(pair.next(*pair.b).entry.len == size);
      REQUIRE(buffer == bytes);
    }
  }
}

TEST_CASE("every flag of fi_sendmsg has its effect") {
  MessagePair pair(FI_SELECTIVE_COMPLETION);
  auto bytes = content(200, 1);
  const auto before = bytes;
  std::vector<char> buffer(200);
  const iovec piece{bytes.data(), 200};
  fi_msg message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = pair.to_b;
  message.context = &op_contexts[0];
  message.data = 99;
  const auto send = [&](std::uint64_t flags) {
    MUST(fi_sendmsg(pair.a->endpoint.get(), &message, flags));
  };
  const auto receive = [&] {
    const iovec into{buffer.data(), 200};
    fi_msg wanted{};
    wanted.msg_iov = &into;
    wanted.iov_count = 1;
    wanted.addr = FI_ADDR_UNSPEC;
    MUST(fi_recvmsg(pair.b->endpoint.get(), &wanted, FI_COMPLETION));
    return pair.next(*pair.b);
  };

  Said said;
  send(0);  // without FI_COMPLETION, so no entry
  CHECK(receive().entry.len == 200);
  CHECK_FALSE(pair.a->look(said));
  for (const std::uint64_t done :
       {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE}) {
    send(FI_COMPLETION | done);
    CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);
    CHECK(receive().entry.len == 200);
  }
  send(FI_COMPLETION | FI_INJECT | FI_REMOTE_CQ_DATA);
  std::fill(bytes.begin(), bytes.end(), 'x');
  CHECK(receive().entry.data == 99);
  CHECK(buffer == before);
  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);

  send(FI_COMPLETION | FI_MATCH_COMPLETE);
  pair.turn();
  CHECK_FALSE(pair.a->look(said));  // it is not received yet
  CHECK(receive().entry.len == 200);
  CHECK(pair.next(*pair.a).entry.op_context == &op_contexts[0]);
}

TEST_CASE("a multi-receive buffer takes messages in a row until less than the minimum is left") {
  MessagePair pair;
  std::size_t least = 101;
  MUST(fi_setopt(&pair.b->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                 sizeof least));
  std::vector<char> shared(1000), next(300);
  pair.share(shared, &op_contexts[0]);
  pair.receive(next, &op_contexts[1]);  // behind the buffer

  const auto bytes = content(300, 1);
  for (int i = 0; i < 4; ++i) pair.send(bytes);

  for (std::size_t i = 0; i < 3; ++i) {
    const Said said = pair.next(*pair.b);
    CHECK(said.entry.op_context == &op_contexts[0]);
    CHECK(said.entry.len == 300);
    CHECK(said.entry.buf == &shared[i * 300]);
    CHECK(((said.entry.flags & FI_MULTI_RECV) != 0) == (i == 2));  // 100 bytes are left: too few
    CHECK(std::equal(bytes.begin(), bytes.end(), &shared[i * 300]));
  }
  const Said last = pair.next(*pair.b);
  CHECK(last.entry.op_context == &op_contexts[1]);
  CHECK(next == bytes);
}

TEST_CASE(
    "two multi-receive buffers take turns, each given back when it is full and posted again") {
  MessagePair pair;
  std::size_t least = 300;
  MUST(fi_setopt(&pair.b->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                 sizeof least));
  // fi_recv() posts multi-receive buffers from here on.
  std::uint64_t flags = FI_RECV | FI_MULTI_RECV;
  MUST(fi_control(&pair.b->endpoint->fid, FI_SETOPSFLAG, &flags));
  std::array<std::vector<char>, 2> halves{std::vector<char>(1000), std::vector<char>(1000)};
  for (std::size_t i = 0; i < 2; ++i) pair.receive(halves[i], &op_contexts[i]);

  for (std::size_t i = 0; i < 12; ++i) {
    const auto bytes = content(300, static_cast<int>(i));
    pair.send(bytes);
    const Said said = pair.next(*pair.b);
    const std::size_t half = i / 3 % 2, place = i % 3 * 300;
    CHECK(said.entry.op_context == &op_contexts[half]);
    REQUIRE(said.entry.buf == &halves[half][place]);
    CHECK(std::equal(bytes.begin(), bytes.end(), &halves[half][place]));
    const bool full = i % 3 == 2;
    CHECK(((said.entry.flags & FI_MULTI_RECV) != 0) == full);
    if (full) pair.receive(halves[half], &op_contexts[half]);
  }
}

// How far the message has come when it is cancelled is left to chance, as the bytes may not be
// read.
TEST_CASE("a multi-receive buffer cancelled during a message is given back with that message") {
  const int turns = GENERATE(2, 8, 32);
  MessagePair pair;
  std::vector<char> shared(41'000'000), next(300);
  pair.share(shared, &op_contexts[0]);
  const auto bytes = content(40'000'000, 1), small = content(300, 2);
  pair.send(bytes);
  pair.turn(turns);

  CHECK(fi_cancel(&pair.b->endpoint->fid, &op_contexts[0]) == 0);
  Said said = pair.next(*pair.b);
  if (said.entry.err == 0 && (said.entry.flags & FI_MULTI_RECV) == 0) {
    CHECK(said.entry.len == bytes.size());  // it arrived before the cancel
    said = pair.next(*pair.b);
  }
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  if (said.entry.err == 0) {
    CHECK(said.entry.len == bytes.size());
    CHECK(std::equal(bytes.begin(), bytes.end(), shared.begin()));
  } else {
    CHECK(said.entry.err == FI_ECANCELED);
  }

  // The next message takes the next receive, unless the large one arrived after the cancel.
  const bool late = said.entry.err != 0 && shared[0] != bytes[0];
  if (late) return;
  pair.receive(next, &op_contexts[1]);
  pair.send(small);
  CHECK(pair.next(*pair.b).entry.op_context == &op_contexts[1]);
  CHECK(next == small);
}

TEST_CASE(
    "a receive behind a multi-receive buffer fails if its source has gone when it is to be "
    "posted") {
  MessagePair pair;
  std::size_t least = 101;
  MUST(fi_setopt(&pair.b->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                 sizeof least));
  Side third(pair.fabric.get(), pair.info.get(), {.caps = kCaps});
  fi_addr_t to_third = pair.b->insert(third.name());
  const fi_addr_t from_third = third.insert(pair.b->name());
  std::vector<char> shared(400), own(300);
  pair.share(shared, &op_contexts[0]);
  MUST(fi_recv(pair.b->endpoint.get(), own.data(), 300, nullptr, to_third, &op_contexts[1]));
  // A connection, so that its end is noticed; the message takes the buffer's first part.
  MUST(fi_inject(third.endpoint.get(), "x", 1, from_third));
  Said said;
  while (!pair.b->look(said)) fi_cq_read(third.completions.get(), nullptr, 0);
  CHECK(said.entry.op_context == &op_contexts[0]);

  SECTION("the source has closed") {
    third.endpoint.reset();
    while (pair.b->look(said)) {
    }
    pair.turn(1000);
  }
  SECTION("the source's address was removed") {
    MUST(fi_av_remove(pair.b->vector.get(), &to_third, 1, 0));
  }
  pair.send(content(300, 1));

  said = pair.next(*pair.b);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  said = pair.next(*pair.b);
  CHECK(said.entry.op_context == &op_contexts[1]);
  CHECK(said.error);
  pair.send(content(300, 2));
  pair.turn(1000);
  CHECK_FALSE(pair.b->look(said));  // the other peer's message is not received by it
}

TEST_CASE("receives of every kind can be cancelled, and one that is not posted cannot") {
  MessagePair pair;
  std::vector<char> buffer(500);
  pair.share(buffer, &op_contexts[0]);
  pair.receive(buffer, &op_contexts[1]);

  for (int i = 1; i >= 0; --i) {
    MUST(fi_cancel(&pair.b->endpoint->fid, &op_contexts[i]));
    const Said said = pair.next(*pair.b);
    CHECK(said.entry.err == FI_ECANCELED);
    CHECK(said.entry.op_context == &op_contexts[i]);
    CHECK(((said.entry.flags & FI_MULTI_RECV) != 0) == (i == 0));
  }
  CHECK(fi_cancel(&pair.b->endpoint->fid, &op_contexts[2]) == -FI_ENOENT);
}

TEST_CASE("a used-up multi-receive buffer completes although the queue is selective") {
  MessagePair pair(FI_SELECTIVE_COMPLETION);
  std::size_t least = 101;
  MUST(fi_setopt(&pair.b->endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                 sizeof least));
  std::vector<char> buffer(500);
  pair.share(buffer, &op_contexts[0]);
  for (int i = 0; i < 3; ++i) pair.send(content(150, i));

  const Said said = pair.next(*pair.b);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  CHECK(said.entry.buf == buffer.data() + 300);
}

TEST_CASE(
    "a claimed message matches no other receive, and is received by the context that claimed it") {
  const auto first = content(3000, 1), second = content(200, 2), third = content(10, 3);
  MessagePair pair;
  for (const auto* bytes : {&first, &second, &third}) {
    MUST(fi_tsend(pair.a->endpoint.get(), bytes->data(), bytes->size(), nullptr, pair.to_b, 7,
                  nullptr));
  }
  fi_msg_tagged wanted{};
  wanted.addr = pair.to_a;
  wanted.tag = 7;
  wanted.context = &op_contexts[0];
  fid_ep* endpoint = pair.b->endpoint.get();

  CHECK(pair.find_at_b(wanted, FI_CLAIM).entry.len == 3000);
  wanted.context = &op_contexts[1];
  CHECK(pair.find_at_b(wanted, FI_DISCARD).entry.len == 200);
  CHECK(pair.find_at_b(wanted).entry.len == 10);

  std::vector<char> buffer(3000);
  const iovec piece{buffer.data(), 3000};
  wanted.msg_iov = &piece;
  wanted.iov_count = 1;
  CHECK(fi_trecvmsg(endpoint, &wanted, FI_CLAIM) == -FI_EINVAL);  // this context claimed nothing
  wanted.context = &op_contexts[0];
  fi_msg untagged{};
  untagged.msg_iov = &piece;
  untagged.iov_count = 1;
  untagged.addr = pair.to_a;
  untagged.context = &op_contexts[0];
  CHECK(fi_recvmsg(endpoint, &untagged, FI_CLAIM) == -FI_EINVAL);  // the claimed message is tagged
  MUST(fi_trecvmsg(endpoint, &wanted, FI_CLAIM));
  const Said said = pair.next(*pair.b);
  CHECK(said.entry.len == 3000);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK(buffer == first);

  CHECK(pair.find_at_b(wanted, FI_CLAIM).entry.len == 10);
  MUST(fi_trecvmsg(endpoint, &wanted, FI_CLAIM | FI_DISCARD));
  CHECK(pair.next(*pair.b).entry.op_context == &op_contexts[0]);
  MUST(fi_trecvmsg(endpoint, &wanted, FI_PEEK));
  CHECK(pair.next(*pair.b).entry.err == FI_ENOMSG);
}

}  // namespace pullman::test
