// Every call that sends or accesses memory, with every way to learn of its completion.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <functional>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kKey = 9;
constexpr std::uint64_t kData = 0x1234;
constexpr std::size_t kLength = 200;
constexpr std::uint64_t kCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_RMA_EVENT | FI_DIRECTED_RECV | FI_SOURCE;

struct Ways : Pair {
  explicit Ways(const Options& options) : Pair(options), bytes(content(kLength, 1)), got(kLength) {}

  iovec piece() { return {bytes.data(), kLength}; }
  template <typename Message>
  Message message() {
    where = piece();
    Message one{};
    one.msg_iov = &where;
    one.iov_count = 1;
    one.addr = to_b;
    one.data = kData;
    return one;
  }

  std::vector<char> bytes;
  std::vector<char> got;
  iovec where{};
};

struct Way {
  const char* name;
  bool completes;  // false for injects
  bool has_data;
  std::function<ssize_t(Ways&, fid_ep*)> call;
};

const std::vector<Way>& message_ways() {
  static const std::vector<Way> ways{
      {"send", true, false,
       [](Ways& p, fid_ep* e) {
         return fi_send(e, p.bytes.data(), kLength, nullptr, p.to_b, nullptr);
       }},
      {"sendv", true, false,
       [](Ways& p, fid_ep* e) {
         const iovec one = p.piece();
         return fi_sendv(e, &one, nullptr, 1, p.to_b, nullptr);
       }},
      {"sendmsg", true, false,
       [](Ways& p, fid_ep* e) {
         const auto one = p.message<fi_msg>();
         return fi_sendmsg(e, &one, FI_COMPLETION);
       }},
      {"senddata", true, true,
       [](Ways& p, fid_ep* e) {
         return fi_senddata(e, p.bytes.data(), kLength, nullptr, kData, p.to_b, nullptr);
       }},
      {"inject", false, false,
       [](Ways& p, fid_ep* e) { return fi_inject(e, p.bytes.data(), kLength, p.to_b); }},
      {"injectdata", false, true, [](Ways& p, fid_ep* e) {
         return fi_injectdata(e, p.bytes.data(), kLength, kData, p.to_b);
       }}};
  return ways;
}

const std::vector<Way>& tagged_ways() {
  static const std::vector<Way> ways{
      {"tsend", true, false,
       [](Ways& p, fid_ep* e) {
         return fi_tsend(e, p.bytes.data(), kLength, nullptr, p.to_b, 7, nullptr);
       }},
      {"tsendv", true, false,
       [](Ways& p, fid_ep* e) {
         const iovec one = p.piece();
         return fi_tsendv(e, &one, nullptr, 1, p.to_b, 7, nullptr);
       }},
      {"tsendmsg", true, false,
       [](Ways& p, fid_ep* e) {
         auto one = p.message<fi_msg_tagged>();
         one.tag = 7;
         return fi_tsendmsg(e, &one, FI_COMPLETION);
       }},
      {"tsenddata", true, true,
       [](Ways& p, fid_ep* e) {
         return fi_tsenddata(e, p.bytes.data(), kLength, nullptr, kData, p.to_b, 7, nullptr);
       }},
      {"tinject", false, false,
       [](Ways& p, fid_ep* e) { return fi_tinject(e, p.bytes.data(), kLength, p.to_b, 7); }},
      {"tinjectdata", false, true, [](Ways& p, fid_ep* e) {
         return fi_tinjectdata(e, p.bytes.data(), kLength, kData, p.to_b, 7);
       }}};
  return ways;
}

const std::vector<Way>& write_ways() {
  static const std::vector<Way> ways{
      {"write", true, false,
       [](Ways& p, fid_ep* e) {
         return fi_write(e, p.bytes.data(), kLength, nullptr, p.to_b, 0, kKey, nullptr);
       }},
      {"writev", true, false,
       [](Ways& p, fid_ep* e) {
         const iovec one = p.piece();
         return fi_writev(e, &one, nullptr, 1, p.to_b, 0, kKey, nullptr);
       }},
      {"writemsg", true, false,
       [](Ways& p, fid_ep* e) {
         auto one = p.message<fi_msg_rma>();
         const fi_rma_iov place{0, kLength, kKey};
         one.rma_iov = &place;
         one.rma_iov_count = 1;
         return fi_writemsg(e, &one, FI_COMPLETION);
       }},
      {"writedata", true, true,
       [](Ways& p, fid_ep* e) {
         return fi_writedata(e, p.bytes.data(), kLength, nullptr, kData, p.to_b, 0, kKey, nullptr);
       }},
      {"inject_write", false, false,
       [](Ways& p, fid_ep* e) {
         return fi_inject_write(e, p.bytes.data(), kLength, p.to_b, 0, kKey);
       }},
      {"inject_writedata", false, true, [](Ways& p, fid_ep* e) {
         return fi_inject_writedata(e, p.bytes.data(), kLength, kData, p.to_b, 0, kKey);
       }}};
  return ways;
}

std::vector<Options> all_options() {
  std::vector<Options> all;
  for (const fi_av_type vector : {FI_AV_MAP, FI_AV_TABLE}) {
    for (const fi_wait_obj wait : {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD}) {
      for (const fi_progress progress : {FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO}) {
        all.push_back({.caps = kCaps, .wait = wait, .vector = vector, .progress = progress});
      }
    }
  }
  return all;
}

// The default flags of calls without flags, set by FI_SETOPSFLAG.
void use_flags(fid_ep* endpoint, std::uint64_t flags) {
  std::uint64_t wish = FI_TRANSMIT | flags;
  MUST(fi_control(&endpoint->fid, FI_SETOPSFLAG, &wish));
}

void post(Ways& pair, bool tagged) {
  std::fill(pair.got.begin(), pair.got.end(), '\0');
  fid_ep* to = pair.b->endpoint.get();
  if (tagged) {
    MUST(fi_trecv(to, pair.got.data(), kLength, nullptr, pair.to_a, 7, 0, nullptr));
  } else {
    MUST(fi_recv(to, pair.got.data(), kLength, nullptr, pair.to_a, nullptr));
  }
}

}  // namespace

TEST_CASE("messages of every send call arrive and complete, however the program waits for them") {
  for (const Options& options : all_options()) {
    Ways pair(options);
    for (const bool tagged : {false, true}) {
      for (const Way& way : tagged ? tagged_ways() : message_ways()) {
        INFO(way.name << ", wait object " << options.wait);
        post(pair, tagged);
        REQUIRE(way.call(pair, pair.a->endpoint.get()) == 0);
        const Said received = pair.next(*pair.b);
        CHECK(received.entry.len == kLength);
        CHECK(pair.got == pair.bytes);
        CHECK(((received.entry.flags & FI_REMOTE_CQ_DATA) != 0) == way.has_data);
        if (way.has_data) CHECK(received.entry.data == kData);
        if (way.completes) CHECK_FALSE(pair.next(*pair.a).error);
      }
    }
    Said said;
    CHECK_FALSE(pair.a->look(said));  // no entries of injects
  }
}

TEST_CASE("every send call completes under every default completion level") {
  Ways pair({.caps = kCaps});
  for (const std::uint64_t level :
       {FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE}) {
    use_flags(pair.a->endpoint.get(), level);
    for (const bool tagged : {false, true}) {
      for (const Way& way : tagged ? tagged_ways() : message_ways()) {
        INFO(way.name);
        post(pair, tagged);
        REQUIRE(way.call(pair, pair.a->endpoint.get()) == 0);
        CHECK_FALSE(pair.next(*pair.b).error);
        if (way.completes) CHECK_FALSE(pair.next(*pair.a).error);
        CHECK(pair.got == pair.bytes);
      }
    }
  }
}

TEST_CASE("every write call counts at the target, and delivers its immediate data") {
  for (const std::uint64_t level : std::array<std::uint64_t, 2>{0, FI_DELIVERY_COMPLETE}) {
    Ways pair({.caps = kCaps});
    use_flags(pair.a->endpoint.get(), level);
    const auto region =
        lend(pair.b->domain.get(), std::as_writable_bytes(std::span(pair.got)), kKey);
    std::uint64_t writes = 0;
    for (const Way& way : write_ways()) {
      INFO(way.name);
      std::fill(pair.got.begin(), pair.got.end(), '\0');
      pair.turn(1);  // takes the lock of b's thread: a network transfer is no synchronisation for
                     // sanitizers
      REQUIRE(way.call(pair, pair.a->endpoint.get()) == 0);
      if (way.completes) CHECK_FALSE(pair.next(*pair.a).error);
      ++writes;
      while (fi_cntr_read(pair.b->remote_writes.get()) < writes) pair.turn(1);
      CHECK(pair.got == pair.bytes);
      if (way.has_data) CHECK(pair.next(*pair.b).entry.data == kData);
    }
    Said said;
    CHECK_FALSE(pair.b->look(said));  // no entries of writes without immediate data
  }
}

TEST_CASE("memory may be freed when its send is complete") {
  Ways pair({.caps = kCaps});
  std::vector<char> got(100000);
  for (int i = 0; i < 20; ++i) {
    const auto before = content(got.size(), i);
    auto sent = std::make_unique<std::vector<char>>(before);
    fid_ep* to = pair.b->endpoint.get();
    MUST(fi_trecv(to, got.data(), got.size(), nullptr, pair.to_a, 7, 0, nullptr));
    MUST(fi_tsend(pair.a->endpoint.get(), sent->data(), sent->size(), nullptr, pair.to_b, 7,
                  nullptr));
    CHECK_FALSE(pair.next(*pair.a).error);
    std::fill(sent->begin(), sent->end(), 'x');
    sent.reset();
    CHECK(pair.next(*pair.b).entry.len == got.size());
    CHECK(got == before);
  }
}

}  // namespace pullman::test
