// Tagged messages through libfabric's calls.
#include "pair.h"

namespace pullman::test {
TEST_CASE("tagged messages of every size arrive whole, with tag, length, source and context") {
  Pair pair;
  for (const std::size_t size : {0, 1, 1000, 1024, 1025, 65536, 1 << 20}) {
    const auto sent = content(size, 1);
    std::vector<char> buffer(size + 1);

    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), buffer.size(), nullptr, pair.to_a, 7, 0,
                  &op_contexts[0]));
    MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), size, nullptr, pair.to_b, 7,
                  &op_contexts[1]));

    const Said received = pair.next(*pair.b);
    const Said done = pair.next(*pair.a);
    CHECK(received.entry.op_context == &op_contexts[0]);
    CHECK(received.entry.flags == (FI_TAGGED | FI_RECV));
    CHECK(received.entry.len == size);
    CHECK(received.entry.tag == 7);
    CHECK(received.source == pair.to_a);
    CHECK(std::equal(sent.begin(), sent.end(), buffer.begin()));
    CHECK(done.entry.op_context == &op_contexts[1]);
    CHECK(done.entry.flags == (FI_TAGGED | FI_SEND));
  }
}

TEST_CASE("a receive matches by tag and ignore mask, whatever came before") {
  Pair pair;
  const auto first = content(100, 1), second = content(100, 2);
  std::vector<char> buffer(100);
  MUST(fi_tsend(pair.a->endpoint.get(), first.data(), 100, nullptr, pair.to_b, 0x10, nullptr));
  MUST(fi_tsend(pair.a->endpoint.get(), second.data(), 100, nullptr, pair.to_b, 0x20, nullptr));
  pair.turn();

  MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 100, nullptr, FI_ADDR_UNSPEC, 0x2F, 0xF,
                &op_contexts[0]));

  CHECK(pair.next(*pair.b).entry.tag == 0x20);
  CHECK(buffer == second);
}

TEST_CASE("a receive matches a message behind more unexpected messages than may be held") {
  setenv("PULLMAN_MAX_PEERS", "4", 1);
  setenv("PULLMAN_UNEXPECTED_BYTES", "1048576", 1);  // 256 KiB per peer
  const std::size_t size = GENERATE(100, 5000, 1 << 20);
  constexpr std::size_t kOthers = 150;
  const auto other = content(2000, 1), wanted = content(size, 2);
  std::vector<std::vector<char>> buffers(kOthers, std::vector<char>(2000));
  std::vector<char> buffer(size);
  {
    Pair pair;
    for (std::size_t i = 0; i < kOthers; ++i) {
      MUST(fi_tsend(pair.a->endpoint.get(), other.data(), 2000, nullptr, pair.to_b, 1, nullptr));
    }
    MUST(fi_tsend(pair.a->endpoint.get(), wanted.data(), size, nullptr, pair.to_b, 2, nullptr));

    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), size, nullptr, FI_ADDR_UNSPEC, 2, 0,
                  &op_contexts[0]));
    CHECK(pair.next(*pair.b).entry.tag == 2);

    CHECK(buffer == wanted);
    for (auto& next : buffers) {
      MUST(fi_trecv(pair.b->endpoint.get(), next.data(), 2000, nullptr, FI_ADDR_UNSPEC, 1, 0,
                    &op_contexts[0]));
      CHECK(pair.next(*pair.b).entry.tag == 1);
      CHECK(next == other);
    }
  }
  unsetenv("PULLMAN_MAX_PEERS");
  unsetenv("PULLMAN_UNEXPECTED_BYTES");
}

TEST_CASE("tens of thousands of short messages are received in reverse order") {
  setenv("PULLMAN_MAX_PEERS", "4", 1);
  setenv("PULLMAN_UNEXPECTED_BYTES", "33554432", 1);
  constexpr std::uint64_t kMany = 60'000;  // more than an equal share holds
  {
    Pair pair;
    for (std::uint64_t tag = 0; tag < kMany;) {
      const ssize_t result = fi_tinject(pair.a->endpoint.get(), &tag, sizeof(tag), pair.to_b, tag);
      if (result == -FI_EAGAIN) {
        pair.turn();
        continue;
      }
      MUST(result);
      ++tag;
    }

    for (std::uint64_t tag = kMany; tag-- > 0;) {
      std::uint64_t got = 0;
      MUST(fi_trecv(pair.b->endpoint.get(), &got, sizeof(got), nullptr, pair.to_a, tag, 0,
                    &op_contexts[0]));
      REQUIRE(pair.next(*pair.b).entry.tag == tag);
      REQUIRE(got == tag);
    }
  }
  unsetenv("PULLMAN_MAX_PEERS");
  unsetenv("PULLMAN_UNEXPECTED_BYTES");
}

TEST_CASE("the buffer of an inject may change at once, and it writes no completion") {
  Pair pair;
  auto bytes = content(1024, 3);
  const auto before = bytes;
  std::vector<char> buffer(1024);
  for (int i = 0; i < 50; ++i) {
    MUST(fi_tinject(pair.a->endpoint.get(), bytes.data(), 1024, pair.to_b, 1));
    std::fill(bytes.begin(), bytes.end(), 'x');
    bytes = before;
  }
  std::fill(bytes.begin(), bytes.end(), 'x');

  for (int i = 0; i < 50; ++i) {
    std::fill(buffer.begin(), buffer.end(), '\0');
    MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 1024, nullptr, pair.to_a, 1, 0, nullptr));
    CHECK(pair.next(*pair.b).entry.len == 1024);
    CHECK(buffer == before);
  }
  Said said;
  CHECK_FALSE(pair.a->look(said));
}

TEST_CASE("a message longer than its buffer is an error entry with the bytes that were truncated") {
  Pair pair;
  const auto sent = content(100, 1);
  std::vector<char> buffer(60);
  MUST(fi_trecv(pair.b->endpoint.get(), buffer.data(), 60, nullptr, pair.to_a, 7, 0,
                &op_contexts[0]));

  MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), 100, nullptr, pair.to_b, 7, nullptr));

  const Said received = pair.next(*pair.b);
  CHECK(received.error);
  CHECK(received.entry.err == FI_ETRUNC);
  CHECK(received.entry.op_context == &op_contexts[0]);
  CHECK(received.entry.tag == 7);
  CHECK(received.entry.len == 60);
  CHECK(received.entry.olen == 40);
  CHECK(std::equal(buffer.begin(), buffer.end(), sent.begin()));
}

TEST_CASE("a cancelled receive completes as cancelled, and the message goes to the next") {
  Pair pair;
  const auto sent = content(8, 1);
  std::vector<char> first(8), second(8);
  MUST(
      fi_trecv(pair.b->endpoint.get(), first.data(), 8, nullptr, pair.to_a, 7, 0, &op_contexts[0]));
  MUST(fi_trecv(pair.b->endpoint.get(), second.data(), 8, nullptr, pair.to_a, 7, 0,
                &op_contexts[1]));

  MUST(fi_cancel(&pair.b->endpoint->fid, &op_contexts[0]));
  MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), 8, nullptr, pair.to_b, 7, nullptr));

  const Said cancelled = pair.next(*pair.b);
  CHECK(cancelled.error);
  CHECK(cancelled.entry.err == FI_ECANCELED);
  CHECK(cancelled.entry.op_context == &op_contexts[0]);
  CHECK(pair.next(*pair.b).entry.op_context == &op_contexts[1]);
  CHECK(second == sent);
}

TEST_CASE("a peek that misses is an error entry, and one that hits has tag and length") {
  Pair pair;
  const auto sent = content(300, 1);
  fi_msg_tagged look{};
  look.addr = pair.to_a;
  look.tag = 9;
  look.context = &op_contexts[0];

  MUST(fi_trecvmsg(pair.b->endpoint.get(), &look, FI_PEEK));
  const Said missed = pair.next(*pair.b);
  MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), 300, nullptr, pair.to_b, 9, nullptr));
  const Said hit = pair.find_at_b(look);

  CHECK(missed.error);
  CHECK(missed.entry.err == FI_ENOMSG);
  CHECK(missed.entry.op_context == &op_contexts[0]);
  CHECK_FALSE(hit.error);
  CHECK(hit.entry.len == 300);
  CHECK(hit.entry.tag == 9);
  CHECK(hit.source == pair.to_a);
}

TEST_CASE("an endpoint reaches itself") {
  Pair pair;
  const fi_addr_t self = pair.a->insert(pair.a->name());
  const auto sent = content(5000, 1);
  std::vector<char> buffer(5000);

  MUST(fi_trecv(pair.a->endpoint.get(), buffer.data(), 5000, nullptr, self, 7, 0, &op_contexts[0]));
  MUST(fi_tsend(pair.a->endpoint.get(), sent.data(), 5000, nullptr, self, 7, &op_contexts[1]));
  pair.next(*pair.a);
  pair.next(*pair.a);

  CHECK(buffer == sent);
}

}  // namespace pullman::test
