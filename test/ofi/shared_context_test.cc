// Shared contexts: receives that are taken by whichever endpoint a message comes to, and transmit
// contexts, which can only be bound.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kSharedCaps =
    FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV;
constexpr std::size_t kEndpoints = 3;

Info shared_info() {
  Info hints = hints_for(kSharedCaps);
  hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  return find(hints);
}

// An endpoint with its own queue.
struct Member {
  Owned<fid_cq> queue;
  Owned<fid_ep> endpoint;
};

// Three endpoints with shared contexts, and a sender to each.
class Family : public Keeper {
 public:
  Family() : info(shared_info()) {
    REQUIRE(info != nullptr);
    fid_fabric* opened = nullptr;
    MUST(fi_fabric(info->fabric_attr, &opened, nullptr));
    fabric.reset(opened);
    const Info plain = find(hints_for(kSharedCaps));
    sender = std::make_unique<Side>(fabric.get(), plain.get(), Options{.caps = kSharedCaps});

    fid_domain* opened_domain = nullptr;
    MUST(fi_domain(fabric.get(), info.get(), &opened_domain, nullptr));
    domain.reset(opened_domain);
    fi_av_attr addresses{};
    fid_av* opened_vector = nullptr;
    MUST(fi_av_open(domain.get(), &addresses, &opened_vector, nullptr));
    vector.reset(opened_vector);
    fid_stx* opened_transmit = nullptr;
    MUST(fi_stx_context(domain.get(), nullptr, &opened_transmit, nullptr));
    transmit.reset(opened_transmit);
    fid_ep* opened_receives = nullptr;
    MUST(fi_srx_context(domain.get(), nullptr, &opened_receives, nullptr));
    receives.reset(opened_receives);
    for (std::size_t i = 0; i < kEndpoints; ++i) members.push_back(open());
    const auto name = sender->name();
    REQUIRE(fi_av_insert(vector.get(), name.data(), 1, &to_sender, 0, nullptr) == 1);
    for (const Member& member : members) to.push_back(sender->insert(name_of(member)));
  }

  Member open() const {
    Member member;
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* opened_queue = nullptr;
    MUST(fi_cq_open(domain.get(), &queue, &opened_queue, nullptr));
    member.queue.reset(opened_queue);
    fid_ep* endpoint = nullptr;
    MUST(fi_endpoint(domain.get(), info.get(), &endpoint, nullptr));
    member.endpoint.reset(endpoint);
    MUST(fi_ep_bind(endpoint, &vector->fid, 0));
    MUST(fi_ep_bind(endpoint, &member.queue->fid, FI_TRANSMIT | FI_RECV));
    MUST(fi_ep_bind(endpoint, &transmit->fid, 0));
    MUST(fi_ep_bind(endpoint, &receives->fid, 0));
    MUST(fi_enable(endpoint));
    return member;
  }

  static std::vector<char> name_of(const Member& member) {
    std::vector<char> name(64);
    std::size_t length = name.size();
    MUST(fi_getname(&member.endpoint->fid, name.data(), &length));
    return name;
  }

  void send(std::size_t to_member, std::vector<char> bytes) {
    const auto& stays = keep(std::move(bytes));
    MUST(fi_send(sender->endpoint.get(), stays.data(), stays.size(), nullptr, to[to_member],
                 nullptr));
  }
  void receive(std::span<char> buffer, void* with, std::uint64_t flags = 0) const {
    const iovec piece{buffer.data(), buffer.size()};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = with;
    MUST(fi_recvmsg(receives.get(), &message, flags));
  }

  // Reads that endpoint's queue, if it has an entry.
  bool look(std::size_t member, Said& said) const {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_readfrom(members[member].queue.get(), &entry, 1, &said.source);
    if (result == -FI_EAGAIN) return false;
    said.error = result == -FI_EAVAIL;
    if (said.error) {
      REQUIRE(fi_cq_readerr(members[member].queue.get(), &said.entry, 0) == 1);
    } else {
      std::memcpy(&said.entry, &entry, sizeof entry);
    }
    return true;
  }
  Said next(std::size_t member) const {
    Said said;
    for (const std::clock_t end = deadline(); !look(member, said);) {
      turn();
      if (std::clock() > end) throw std::runtime_error("nothing came");
    }
    return said;
  }
  void turn(int times = 1) const {
    for (int i = 0; i < times; ++i) {
      fi_cq_read(sender->completions.get(), nullptr, 0);
      for (const Member& member : members) {
        if (member.queue != nullptr) fi_cq_read(member.queue.get(), nullptr, 0);
      }
    }
  }

  // Closed in reverse order.
  Info info;
  Owned<fid_fabric> fabric;
  std::unique_ptr<Side> sender;
  Owned<fid_domain> domain;
  Owned<fid_av> vector;
  Owned<fid_stx> transmit;
  Owned<fid_ep> receives;
  std::vector<Member> members;
  std::vector<fi_addr_t> to;  // in the sender's vector
  fi_addr_t to_sender = FI_ADDR_NOTAVAIL;
};

}  // namespace

TEST_CASE("shared contexts are offered") {
  const Info info = shared_info();
  REQUIRE(info != nullptr);
  CHECK(info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT);
  CHECK(info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT);
  CHECK(info->domain_attr->max_ep_stx_ctx > 0);
  CHECK(info->domain_attr->max_ep_srx_ctx > 0);
}

TEST_CASE("a message takes the next shared receive, whichever endpoint it comes to") {
  const std::size_t size = GENERATE(8u, 2000u, 100'000u, 700'000u);
  const bool posted_first = GENERATE(true, false);
  Family family;
  std::vector<std::vector<char>> buffers(6, std::vector<char>(size));
  const std::array<std::size_t, 6> order = {2, 0, 0, 1, 2, 1};
  const auto post = [&](std::size_t i) { family.receive(buffers[i], &op_contexts[i]); };
  if (posted_first) {
    for (std::size_t i = 0; i < order.size(); ++i) post(i);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto bytes = content(size, static_cast<int>(i));
    family.send(order[i], bytes);
    if (!posted_first) {
      family.turn(20);
      post(i);
    }
    const Said said = family.next(order[i]);
    CHECK(said.entry.op_context == &op_contexts[i]);
    CHECK(said.entry.len == size);
    CHECK(said.entry.flags == (FI_MSG | FI_RECV));
    CHECK(said.source == family.to_sender);
    CHECK(buffers[i] == bytes);
  }
}

TEST_CASE("shared receives match by tag and source in the order in which they were posted") {
  Family family;
  std::array<std::vector<char>, 4> buffers;
  buffers.fill(std::vector<char>(100));
  const auto post = [&](std::size_t i, fi_addr_t from, std::uint64_t tag, std::uint64_t ignore) {
    MUST(fi_trecv(family.receives.get(), buffers[i].data(), 100, nullptr, from, tag, ignore,
                  &op_contexts[i]));
  };
  post(0, FI_ADDR_UNSPEC, 5, 0);
  post(1, FI_ADDR_UNSPEC, 0, ~0ULL);
  post(2, family.to_sender, 0, ~0ULL);
  const auto send = [&](std::size_t to, std::uint64_t tag) {
    const auto bytes = content(100, static_cast<int>(tag));
    MUST(fi_tinject(family.sender->endpoint.get(), bytes.data(), 100, family.to[to], tag));
  };
  send(1, 7);
  CHECK(family.next(1).entry.op_context == &op_contexts[1]);
  send(0, 5);
  CHECK(family.next(0).entry.op_context == &op_contexts[0]);
  send(2, 6);
  const Said said = family.next(2);
  CHECK(said.entry.op_context == &op_contexts[2]);
  CHECK(said.entry.tag == 6);
  CHECK(buffers[0] == content(100, 5));
  CHECK(buffers[1] == content(100, 7));
  CHECK(buffers[2] == content(100, 6));

  // Two messages that came to one endpoint before their receives, received in reverse order.
  send(1, 10);
  send(1, 11);
  family.turn(50);
  post(0, family.to_sender, 11, 0);
  CHECK(family.next(1).entry.tag == 11);
  post(3, family.to_sender, 10, 0);
  CHECK(family.next(1).entry.tag == 10);
  CHECK(buffers[3] == content(100, 10));
}

TEST_CASE("a shared receive takes messages of its source only") {
  Family family;
  const auto name = Family::name_of(family.members[1]);
  fi_addr_t to_member = FI_ADDR_NOTAVAIL;
  REQUIRE(fi_av_insert(family.vector.get(), name.data(), 1, &to_member, 0, nullptr) == 1);
  const bool posted_first = GENERATE(true, false);
  std::vector<char> buffer(8), other(8);
  const auto post = [&] {
    MUST(fi_recv(family.receives.get(), buffer.data(), 8, nullptr, family.to_sender,
                 &op_contexts[0]));
    family.receive(other, &op_contexts[1]);
  };
  if (posted_first) post();
  const auto bytes = content(8, 1);
  MUST(fi_inject(family.members[0].endpoint.get(), bytes.data(), 8, to_member));
  if (!posted_first) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    family.turn(50);
    post();
  }
  CHECK(family.next(1).entry.op_context == &op_contexts[1]);
  CHECK(other == bytes);
  family.send(1, content(8, 2));
  CHECK(family.next(1).entry.op_context == &op_contexts[0]);
}

TEST_CASE("a shared multi-receive buffer takes messages of all endpoints, one behind the other") {
  const std::size_t size = GENERATE(100u, 400'000u);
  Family family;
  const std::size_t least = size;
  MUST(fi_setopt(&family.receives->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                 sizeof least));
  std::vector<char> buffer(3 * size + 1), behind(size);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.receive(behind, &op_contexts[1]);
  std::vector<std::vector<char>> sent;
  sent.reserve(4);
  for (int i = 0; i < 4; ++i) sent.push_back(content(size, i));
  for (std::size_t i = 0; i < 4; ++i) family.send(i % kEndpoints, sent[i]);

  std::map<void*, std::vector<char>> placed;
  int last = 0;
  for (std::size_t seen = 0; seen < 4;) {
    Said said;
    family.turn();
    for (std::size_t member = 0; member < kEndpoints; ++member) {
      if (!family.look(member, said)) continue;
      ++seen;
      CHECK_FALSE(said.error);
      CHECK(said.entry.len == size);
      if (said.entry.op_context == &op_contexts[1]) continue;
      const auto* at = static_cast<const char*>(said.entry.buf);
      placed[said.entry.buf] = std::vector<char>(at, at + said.entry.len);
      if ((said.entry.flags & FI_MULTI_RECV) != 0) ++last;
    }
  }
  CHECK(last == 1);
  REQUIRE(placed.size() == 3);
  std::vector<std::vector<char>> got = {behind};
  for (std::size_t i = 0; i < 3; ++i) got.push_back(placed.at(buffer.data() + i * size));
  std::sort(got.begin(), got.end());
  std::sort(sent.begin(), sent.end());
  CHECK(got == sent);
}

TEST_CASE("a shared receive, or buffer, that has taken nothing can be cancelled") {
  Family family;
  std::vector<char> buffer(1000);
  family.receive(buffer, &op_contexts[0]);
  family.receive(buffer, &op_contexts[1], FI_MULTI_RECV);
  MUST(fi_cancel(&family.receives->fid, &op_contexts[1]));
  MUST(fi_cancel(&family.receives->fid, &op_contexts[0]));
  const Said many = family.next(0), one = family.next(0);
  CHECK(many.entry.err == FI_ECANCELED);
  CHECK(many.entry.op_context == &op_contexts[1]);
  CHECK((many.entry.flags & FI_MULTI_RECV) != 0);
  CHECK(one.entry.err == FI_ECANCELED);
  CHECK(one.entry.op_context == &op_contexts[0]);
  CHECK(fi_cancel(&family.receives->fid, &op_contexts[0]) == -FI_ENOENT);
}

TEST_CASE("a buffer that is cancelled during a message takes no other message") {
  Family family;
  const auto bytes = content(20'000'000, 1);
  std::vector<char> buffer(30'000'000), other(8);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  REQUIRE(glimpse(buffer[100]) == bytes[100]);
  MUST(fi_cancel(&family.receives->fid, &op_contexts[0]));
  family.receive(other, &op_contexts[1]);
  family.send(1, content(8, 2));

  const Said said = family.next(0);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  CHECK(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
  CHECK(family.next(1).entry.op_context == &op_contexts[1]);
}

TEST_CASE("a message that takes long does not block others") {
  Family family;
  const auto bytes = content(20'000'000, 1);
  std::vector<char> buffer(bytes.size() + 1000);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  family.send(1, content(900, 2));
  const Said second = family.next(1);
  family.send(2, content(90, 3));  // to another endpoint: it may come first if packets are lost
  CHECK(second.entry.buf == buffer.data() + bytes.size());
  CHECK((second.entry.flags & FI_MULTI_RECV) == 0);
  const Said third = family.next(2), first = family.next(0);
  CHECK(third.entry.buf == buffer.data() + bytes.size() + 900);
  CHECK(first.entry.len == bytes.size());
  // The last to complete gives the buffer back: ten bytes are left of the 64 asked for.
  CHECK(((third.entry.flags ^ first.entry.flags) & FI_MULTI_RECV) != 0);
}

TEST_CASE("a cancelled buffer is given back even if the endpoint of its message is closed") {
  Family family;
  const auto bytes = content(20'000'000, 1);
  std::vector<char> buffer(2 * bytes.size());
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  REQUIRE(glimpse(buffer[100]) == bytes[100]);
  MUST(fi_cancel(&family.receives->fid, &op_contexts[0]));
  MUST(fi_cancel(&family.receives->fid, &op_contexts[0]));  // a second cancel is no error
  family.members[0].endpoint.reset();

  const Said said = family.next(1);
  CHECK(said.entry.err == FI_ECANCELED);
  CHECK(said.entry.op_context == &op_contexts[0]);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
}

namespace {

// Checks that a buffer that was given back is not written to, nor given back again.
void check_is_left_alone(const Family& family, std::vector<char>& buffer,
                         const std::vector<char>& sent, const Side& from, fi_addr_t to) {
  std::fill(buffer.begin(), buffer.end(), '!');
  MUST(fi_send(from.endpoint.get(), sent.data(), sent.size(), nullptr, to, nullptr));
  Said said;
  for (int turns = 0; turns < 300; ++turns) {
    fi_cq_read(from.completions.get(), nullptr, 0);
    REQUIRE_FALSE(family.look(1, said));
  }
  CHECK(std::all_of(buffer.begin(), buffer.end(), [](char byte) { return byte == '!'; }));
}

}  // namespace

TEST_CASE(
    "a buffer cancelled at the endpoint of its message is given back once, with the message") {
  Family family;
  const auto bytes = content(20'000'000, 1), more = content(100, 2);
  std::vector<char> buffer(30'000'000);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  MUST(fi_cancel(&family.members[0].endpoint->fid, &op_contexts[0]));

  const Said said = family.next(0);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  CHECK(std::equal(bytes.begin(), bytes.end(), buffer.begin()));
  check_is_left_alone(family, buffer, more, *family.sender, family.to[1]);
}

TEST_CASE("a buffer whose message is cut off by its sender's end is given back once") {
  const char* const set = getenv("FI_PULLMAN_CLOSE_TIMEOUT");
  const std::string before = set != nullptr ? set : "10";
  setenv("FI_PULLMAN_CLOSE_TIMEOUT", "0", 1);  // the sender closes during the message
  Family family;
  const Info plain = find(hints_for(kSharedCaps));
  Side other(family.fabric.get(), plain.get(), Options{.caps = kSharedCaps});
  setenv("FI_PULLMAN_CLOSE_TIMEOUT", before.c_str(), 1);
  const fi_addr_t to = other.insert(Family::name_of(family.members[1]));
  const auto bytes = content(100'000'000, 1), more = content(100, 2);
  std::vector<char> buffer(bytes.size() + 1000);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  family.sender->endpoint.reset();

  Said said;
  while (!family.look(0, said) && std::clock() < end) {
  }
  REQUIRE(said.error);
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  check_is_left_alone(family, buffer, more, other, to);
}

TEST_CASE(
    "a shared receive from a source that has gone can be posted beside an endpoint not enabled") {
  Family family;
  std::vector<char> buffer(8);
  for (std::size_t member = 0; member < kEndpoints; ++member) {
    family.receive(buffer, &op_contexts[0]);
    family.send(member, content(8, 1));
    family.next(member);
  }
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
  const Owned<fid_ep> late(opened);
  MUST(fi_ep_bind(opened, &family.vector->fid, 0));
  MUST(fi_ep_bind(opened, &family.receives->fid, 0));
  family.sender->endpoint.reset();
  for (int turns = 0; turns < 300; ++turns) {
    for (const Member& member : family.members) fi_cq_read(member.queue.get(), nullptr, 0);
  }

  CHECK(fi_recv(family.receives.get(), buffer.data(), 8, nullptr, family.to_sender,
                &op_contexts[1]) == 0);
}

TEST_CASE("a shared receive from a peer fails when that has gone, and can be posted again") {
  Family family;
  std::vector<char> buffer(8);
  const auto post = [&](int which) {
    return fi_recv(family.receives.get(), buffer.data(), 8, nullptr, family.to_sender,
                   &op_contexts[which]);
  };
  for (std::size_t member = 0; member < kEndpoints; ++member) {  // connects the peer to all
    MUST(post(0));
    family.send(member, content(8, 1));
    CHECK(family.next(member).entry.op_context == &op_contexts[0]);
  }
  MUST(post(1));
  family.sender->endpoint.reset();
  Said said;
  bool told = false;
  for (const std::clock_t end = deadline(); !told && std::clock() < end;) {
    for (std::size_t member = 0; member < kEndpoints && !told; ++member) {
      told = family.look(member, said);
    }
  }
  REQUIRE(told);
  CHECK(said.error);
  CHECK(said.entry.op_context == &op_contexts[1]);
  // The peer is being called again, so the receive waits.
  CHECK(post(2) == 0);
  for (int turns = 0; turns < 3000; ++turns) REQUIRE_FALSE(family.look(0, said));
  CHECK(fi_recv(family.receives.get(), buffer.data(), 8, nullptr, 1000, nullptr) == -FI_EINVAL);
}

TEST_CASE("a shared receive fails with the reason of the endpoint that knew its source") {
  Family family;
  fid_ep* opened = nullptr;
  MUST(fi_srx_context(family.domain.get(), nullptr, &opened, nullptr));
  const Owned<fid_ep> receives(opened);
  const auto open = [&] {
    MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
    MUST(fi_ep_bind(opened, &family.vector->fid, 0));
    MUST(fi_ep_bind(opened, &family.transmit->fid, 0));
    MUST(fi_ep_bind(opened, &receives->fid, 0));
    return Owned<fid_ep>(opened);
  };
  const Owned<fid_ep> idle = open();
  const Owned<fid_ep> endpoint = open();
  fid_cq* queue = family.members[0].queue.get();
  MUST(fi_ep_bind(endpoint.get(), &queue->fid, FI_TRANSMIT | FI_RECV));
  MUST(fi_enable(endpoint.get()));
  const auto bytes = content(8, 1);
  std::vector<char> buffer(8);
  const auto post = [&](int which) {
    MUST(fi_recv(receives.get(), buffer.data(), 8, nullptr, family.to_sender, &op_contexts[which]));
  };
  post(0);
  std::array<char, 64> name;
  std::size_t length = name.size();
  MUST(fi_getname(&endpoint->fid, name.data(), &length));
  const fi_addr_t there = family.sender->insert({name.begin(), name.end()});
  MUST(fi_inject(family.sender->endpoint.get(), bytes.data(), 8, there));
  CHECK(family.next(0).entry.op_context == &op_contexts[0]);
  post(1);
  family.sender->endpoint.reset();

  Said said;
  bool told = false;
  for (const std::clock_t end = deadline(); !told && std::clock() < end;)
    told = family.look(0, said);
  REQUIRE(told);
  CHECK(said.error);
  CHECK(said.entry.err != 0);
  CHECK(said.entry.op_context == &op_contexts[1]);
}

TEST_CASE("an endpoint that is not enabled takes no shared receive") {
  Family family;
  family.members.pop_back();
  family.to.pop_back();
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
  Member late;
  late.endpoint.reset(opened);
  MUST(fi_ep_bind(opened, &family.vector->fid, 0));
  MUST(fi_ep_bind(opened, &family.transmit->fid, 0));
  MUST(fi_ep_bind(opened, &family.receives->fid, 0));
  const fi_addr_t to_late = family.sender->insert(Family::name_of(late));
  std::vector<char> buffer(8);
  family.receive(buffer, &op_contexts[0]);
  const auto bytes = content(8, 1);
  MUST(fi_inject(family.sender->endpoint.get(), bytes.data(), 8, to_late));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  family.turn(50);
  CHECK(buffer == std::vector<char>(8));

  fi_cq_attr attributes{};
  attributes.format = FI_CQ_FORMAT_TAGGED;
  fid_cq* queue = nullptr;
  MUST(fi_cq_open(family.domain.get(), &attributes, &queue, nullptr));
  late.queue.reset(queue);
  MUST(fi_ep_bind(opened, &queue->fid, FI_TRANSMIT | FI_RECV));
  MUST(fi_enable(opened));
  family.members.push_back(std::move(late));
  CHECK(family.next(2).entry.op_context == &op_contexts[0]);
  CHECK(buffer == bytes);
}

TEST_CASE("endpoints with shared receives must share an address vector") {
  Family family;
  fi_av_attr addresses{};
  fid_av* opened_vector = nullptr;
  MUST(fi_av_open(family.domain.get(), &addresses, &opened_vector, nullptr));
  const Owned<fid_av> other(opened_vector);
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
  const Owned<fid_ep> stranger(opened);
  MUST(fi_ep_bind(opened, &other->fid, 0));
  MUST(fi_ep_bind(opened, &family.transmit->fid, 0));
  MUST(fi_ep_bind(opened, &family.receives->fid, 0));
  CHECK(fi_enable(opened) == -FI_EOPBADSTATE);
}

TEST_CASE("thousands of shared receives and messages match, although most do not fit each other") {
  Family family;
  constexpr int kMany = 2000;
  std::vector<char> buffer(8);
  const auto send = [&](std::uint64_t tag) {
    const auto bytes = content(8, 1);
    while (fi_tinject(family.sender->endpoint.get(), bytes.data(), 8, family.to[tag % kEndpoints],
                      tag) == -FI_EAGAIN) {
      family.turn();
    }
    if (tag % 64 == 0) family.turn();
  };
  const auto post = [&](std::uint64_t tag) {
    MUST(fi_trecv(family.receives.get(), buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, tag, 0,
                  nullptr));
  };
  for (int i = 0; i < kMany; ++i) post(i);
  for (int i = kMany; i < 2 * kMany; ++i) send(i);
  for (int i = kMany; i-- > 0;) send(i);
  for (int i = 2 * kMany; i-- > kMany;) post(i);
  std::size_t seen = 0;
  std::vector<bool> tags(2 * kMany);
  for (const std::clock_t end = deadline(); seen < 2 * kMany && std::clock() < end;) {
    Said said;
    for (std::size_t member = 0; member < kEndpoints; ++member) {
      if (!family.look(member, said)) continue;
      ++seen;
      CHECK(said.entry.tag % kEndpoints == member);
      tags[said.entry.tag] = true;
    }
    fi_cq_read(family.sender->completions.get(), nullptr, 0);
  }
  CHECK(seen == 2 * kMany);
  CHECK(std::count(tags.begin(), tags.end(), true) == 2 * kMany);
}

TEST_CASE("a message longer than its shared receive is truncated") {
  Family family;
  std::vector<char> buffer(10);
  family.receive(buffer, &op_contexts[0]);
  family.send(1, content(100, 1));
  const Said said = family.next(1);
  CHECK(said.entry.err == FI_ETRUNC);
  CHECK(said.entry.olen == 90);
}

TEST_CASE("an endpoint that closes leaves the shared receives to the others") {
  Family family;
  const auto bytes = content(20'000'000, 1);
  std::vector<char> buffer(bytes.size() + 1000);
  family.receive(buffer, &op_contexts[0], FI_MULTI_RECV);
  family.send(0, bytes);
  const std::clock_t end = deadline();
  while (glimpse(buffer[100]) != bytes[100] && std::clock() < end) family.turn();
  REQUIRE(glimpse(buffer[100]) == bytes[100]);
  family.members[0].endpoint.reset();  // during a message into the buffer
  family.send(1, content(500, 2));

  const Said said = family.next(1);
  CHECK(said.entry.buf == buffer.data() + bytes.size());  // the first message's room is lost
  CHECK(said.entry.len == 500);
  CHECK((said.entry.flags & FI_MULTI_RECV) == 0);
}

TEST_CASE("shared contexts are busy as long as endpoints are bound to them") {
  Family family;
  CHECK(fi_close(&family.receives->fid) == -FI_EBUSY);
  CHECK(fi_close(&family.transmit->fid) == -FI_EBUSY);
  std::vector<char> buffer(8);
  family.receive(buffer, nullptr);
  family.members.clear();
  CHECK(fi_close(&family.receives.release()->fid) == 0);
  CHECK(fi_close(&family.transmit.release()->fid) == 0);
}

TEST_CASE(
    "an endpoint with shared contexts needs both, receives through them, and sends by itself") {
  Family family;
  std::vector<char> buffer(8);
  CHECK(fi_recv(family.members[0].endpoint.get(), buffer.data(), 8, nullptr, FI_ADDR_UNSPEC,
                nullptr) == -FI_EOPBADSTATE);
  const auto bytes = content(8, 1);
  MUST(fi_recv(family.sender->endpoint.get(), buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, nullptr));
  MUST(fi_inject(family.members[1].endpoint.get(), bytes.data(), 8, family.to_sender));
  Said said;
  for (const std::clock_t end = deadline(); !family.sender->look(said) && std::clock() < end;) {
    family.turn();
  }
  CHECK(buffer == bytes);

  fid_ep* opened = nullptr;
  MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
  const Owned<fid_ep> bare(opened);
  MUST(fi_ep_bind(opened, &family.vector->fid, 0));
  CHECK(fi_enable(opened) == -FI_EOPBADSTATE);
  MUST(fi_ep_bind(opened, &family.transmit->fid, 0));
  CHECK(fi_enable(opened) == -FI_EOPBADSTATE);
  MUST(fi_ep_bind(opened, &family.receives->fid, 0));
  CHECK(fi_ep_bind(opened, &family.receives->fid, 0) == -FI_EINVAL);
  CHECK(fi_enable(opened) == 0);
  CHECK(fi_ep_bind(family.sender->endpoint.get(), &family.receives->fid, 0) == -FI_EOPBADSTATE);

  MUST(fi_endpoint(family.domain.get(), family.info.get(), &opened, nullptr));
  const Owned<fid_ep> half(opened);
  MUST(fi_ep_bind(opened, &family.vector->fid, 0));
  MUST(fi_ep_bind(opened, &family.receives->fid, 0));
  CHECK(fi_enable(opened) == -FI_EOPBADSTATE);
  const Info plain = find(hints_for(kSharedCaps));
  MUST(fi_endpoint(family.domain.get(), plain.get(), &opened, nullptr));
  const Owned<fid_ep> own(opened);
  CHECK(fi_ep_bind(opened, &family.receives->fid, 0) == -FI_EINVAL);
  CHECK(fi_ep_bind(opened, &family.transmit->fid, 0) == -FI_EINVAL);
}

TEST_CASE("flags that shared receives do not support are refused") {
  Family family;
  fi_msg message{};
  message.addr = FI_ADDR_UNSPEC;
  for (const std::uint64_t flags : {std::uint64_t{FI_PEEK}, std::uint64_t{FI_CLAIM},
                                    std::uint64_t{FI_DISCARD}, std::uint64_t{FI_TRIGGER}}) {
    CHECK(fi_recvmsg(family.receives.get(), &message, flags) == -FI_ENOSYS);
  }
  CHECK(fi_recvmsg(family.receives.get(), &message, FI_MULTI_RECV) == -FI_EINVAL);
  CHECK(fi_inject(family.receives.get(), nullptr, 0, 0) == -FI_ENOSYS);
  CHECK(fi_read(family.receives.get(), nullptr, 0, nullptr, 0, 0, 0, nullptr) == -FI_ENOSYS);
  fid_ep* alias = nullptr;
  CHECK(fi_ep_alias(family.receives.get(), &alias, FI_RECV) == -FI_ENOSYS);
  std::uint64_t flags = FI_RECV;
  MUST(fi_control(&family.receives->fid, FI_GETOPSFLAG, &flags));
  CHECK(flags == 0);
  flags = FI_RECV | FI_COMPLETION;
  MUST(fi_control(&family.receives->fid, FI_SETOPSFLAG, &flags));
  flags = FI_RECV;
  MUST(fi_control(&family.receives->fid, FI_GETOPSFLAG, &flags));
  CHECK(flags == FI_COMPLETION);
  std::size_t least = 7, length = sizeof least;
  MUST(fi_setopt(&family.receives->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, length));
  least = 0;
  MUST(fi_getopt(&family.receives->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length));
  CHECK(least == 7);
}

TEST_CASE("shared receives match while the application makes no call") {
  Family family;
  const auto bytes = content(3'000'000, 1);
  std::vector<char> buffer(bytes.size());
  family.receive(buffer, &op_contexts[0]);
  family.send(2, bytes);
  Said said;
  bool sent = family.sender->look(said);
  for (int naps = 0; !sent && naps < 30'000; ++naps) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    sent = family.sender->look(said);
  }
  REQUIRE(sent);
  CHECK_FALSE(said.error);
  CHECK(family.next(2).entry.op_context == &op_contexts[0]);
  CHECK(buffer == bytes);
}

}  // namespace pullman::test
