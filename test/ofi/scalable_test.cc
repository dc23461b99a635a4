// Scalable endpoints: one address, several transmit and receive contexts.
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "pair.h"

namespace pullman::test {
namespace {

constexpr std::uint64_t kLaneCaps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE |
                                    FI_MULTI_RECV | FI_NAMED_RX_CTX | FI_RMA | FI_ATOMIC |
                                    FI_TRIGGER;
constexpr int kContextBits = 8;
constexpr std::size_t kMost = 16;

Info scalable_info(std::size_t contexts) {
  Info hints = hints_for(kLaneCaps);
  hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = contexts;
  return find(hints);
}

struct Lane {
  Lane() = default;
  Lane(Lane&&) = default;
  // Members are closed in reverse order.
  Lane& operator=(Lane&& other) noexcept {
    handle = std::move(other.handle);
    counter = std::move(other.counter);
    queue = std::move(other.queue);
    return *this;
  }

  Owned<fid_cq> queue;
  Owned<fid_cntr> counter;
  Owned<fid_ep> handle;
};

class ScalableSide {
 public:
  ScalableSide(fid_fabric* fabric, fi_info* info, std::size_t lanes) {
    fid_domain* opened = nullptr;
    MUST(fi_domain(fabric, info, &opened, nullptr));
    domain.reset(opened);
    fi_av_attr addresses{};
    addresses.rx_ctx_bits = kContextBits;
    fid_av* opened_vector = nullptr;
    MUST(fi_av_open(domain.get(), &addresses, &opened_vector, nullptr));
    vector.reset(opened_vector);
    fid_ep* opened_endpoint = nullptr;
    MUST(fi_scalable_ep(domain.get(), info, &opened_endpoint, nullptr));
    endpoint.reset(opened_endpoint);
    MUST(fi_scalable_ep_bind(endpoint.get(), &vector->fid, 0));
    for (std::size_t i = 0; i < lanes; ++i) {
      transmit.push_back(open(FI_CLASS_TX_CTX, static_cast<int>(i)));
      receive.push_back(open(FI_CLASS_RX_CTX, static_cast<int>(i)));
    }
    MUST(fi_enable(endpoint.get()));
  }

  Lane open(std::size_t fid_class, int index) const {
    const bool sends = fid_class == FI_CLASS_TX_CTX;
    Lane lane;
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* opened_queue = nullptr;
    MUST(fi_cq_open(domain.get(), &queue, &opened_queue, nullptr));
    lane.queue.reset(opened_queue);
    fi_cntr_attr counting{};
    fid_cntr* counter = nullptr;
    MUST(fi_cntr_open(domain.get(), &counting, &counter, nullptr));
    lane.counter.reset(counter);
    fid_ep* handle = nullptr;
    MUST(sends ? fi_tx_context(endpoint.get(), index, nullptr, &handle, nullptr)
               : fi_rx_context(endpoint.get(), index, nullptr, &handle, nullptr));
    lane.handle.reset(handle);
    CHECK(handle->fid.fclass == fid_class);
    MUST(fi_ep_bind(handle, &lane.queue->fid, sends ? FI_TRANSMIT : FI_RECV));
    MUST(fi_ep_bind(handle, &lane.counter->fid, sends ? FI_SEND : FI_RECV));
    MUST(fi_enable(handle));
    return lane;
  }

  // Closed in reverse order.
  Owned<fid_domain> domain;
  Owned<fid_av> vector;
  Owned<fid_ep> endpoint;
  std::vector<Lane> transmit;
  std::vector<Lane> receive;
};

class ScalablePair : public Keeper {
 public:
  explicit ScalablePair(std::size_t lanes) : info(scalable_info(lanes)) {
    REQUIRE(info != nullptr);
    fid_fabric* opened = nullptr;
    MUST(fi_fabric(info->fabric_attr, &opened, nullptr));
    fabric.reset(opened);
    a = std::make_unique<ScalableSide>(fabric.get(), info.get(), lanes);
    b = std::make_unique<ScalableSide>(fabric.get(), info.get(), lanes);
    to_b = insert(*a, *b);
    to_a = insert(*b, *a);
  }

  fi_addr_t to_b_at(std::size_t lane) const {
    return fi_rx_addr(to_b, static_cast<int>(lane), kContextBits);
  }

  // Returns the next entry of that queue, while both ends make progress.
  Said next(const Lane& lane) const {
    Said said;
    for (const std::clock_t end = deadline(); !look(lane, said);) {
      turn();
      if (std::clock() > end) throw std::runtime_error("nothing came");
    }
    return said;
  }

  static bool look(const Lane& lane, Said& said) {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_readfrom(lane.queue.get(), &entry, 1, &said.source);
    if (result == -FI_EAGAIN) return false;
    said.error = result == -FI_EAVAIL;
    if (said.error) {
      REQUIRE(fi_cq_readerr(lane.queue.get(), &said.entry, 0) == 1);
    } else {
      std::memcpy(&said.entry, &entry, sizeof entry);
    }
    return true;
  }

  void turn(int times = 1) const {
    for (int i = 0; i < times; ++i) {
      fi_cq_read(a->transmit[0].queue.get(), nullptr, 0);
      fi_cq_read(b->receive[0].queue.get(), nullptr, 0);
    }
  }

  Info info;
  Owned<fid_fabric> fabric;
  std::unique_ptr<ScalableSide> a;
  std::unique_ptr<ScalableSide> b;
  fi_addr_t to_a = FI_ADDR_NOTAVAIL;
  fi_addr_t to_b = FI_ADDR_NOTAVAIL;

 private:
  static fi_addr_t insert(ScalableSide& of, const ScalableSide& other) {
    std::array<char, 64> name;
    std::size_t length = name.size();
    MUST(fi_getname(&other.endpoint->fid, name.data(), &length));
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    REQUIRE(fi_av_insert(of.vector.get(), name.data(), 1, &number, 0, nullptr) == 1);
    return number;
  }
};

void send(ScalablePair& pair, std::size_t from, std::size_t to, std::vector<char> bytes,
          void* with = nullptr) {
  const auto& stays = pair.keep(std::move(bytes));
  MUST(fi_send(pair.a->transmit[from].handle.get(), stays.data(), stays.size(), nullptr,
               pair.to_b_at(to), with));
}

void receive(const ScalablePair& pair, std::size_t at, std::span<char> buffer, void* with) {
  MUST(fi_recv(pair.b->receive[at].handle.get(), buffer.data(), buffer.size(), nullptr,
               FI_ADDR_UNSPEC, with));
}

}  // namespace

TEST_CASE("scalable endpoints of up to 16 contexts are offered") {
  for (const std::size_t contexts : {std::size_t{2}, kMost}) {
    const Info info = scalable_info(contexts);
    REQUIRE(info != nullptr);
    CHECK(info->ep_attr->tx_ctx_cnt == contexts);
    CHECK(info->ep_attr->rx_ctx_cnt == contexts);
    CHECK(info->domain_attr->max_ep_tx_ctx == kMost);
    CHECK(info->domain_attr->max_ep_rx_ctx == kMost);
    CHECK((info->caps & FI_NAMED_RX_CTX) != 0);
  }
  CHECK(scalable_info(kMost + 1) == nullptr);
}

TEST_CASE("a message goes to the receive context that its address names, and completes there") {
  const std::size_t size = GENERATE(8u, 100'000u, 700'000u);
  ScalablePair pair(kMost);
  std::vector<std::vector<char>> received(kMost, std::vector<char>(size)), tagged = received;
  const auto is_tagged = [](std::size_t to) { return to % 2 == 1; };
  for (std::size_t to = 0; to < kMost; ++to) {
    fid_ep* at = pair.b->receive[to].handle.get();
    MUST(fi_trecv(at, tagged[to].data(), size, nullptr, FI_ADDR_UNSPEC, 0, ~0ULL, &tagged));
    receive(pair, to, received[to], &received);
  }
  for (std::size_t to = kMost; to-- > 0;) {
    const std::size_t from = (to + 5) % kMost;
    const auto bytes = content(size, static_cast<int>(to));
    fid_ep* by = pair.a->transmit[from].handle.get();
    if (is_tagged(to)) {
      MUST(fi_tsend(by, bytes.data(), size, nullptr, pair.to_b_at(to), 40 + to, &op_contexts[to]));
    } else {
      send(pair, from, to, bytes, &op_contexts[to]);
    }
    CHECK(pair.next(pair.a->transmit[from]).entry.op_context == &op_contexts[to]);
    const Said said = pair.next(pair.b->receive[to]);
    CHECK(said.entry.len == size);
    CHECK(said.source == pair.to_a);
    CHECK(said.entry.op_context == (is_tagged(to) ? &tagged : &received));
    if (is_tagged(to)) CHECK(said.entry.tag == 40 + to);
    CHECK((is_tagged(to) ? tagged : received)[to] == bytes);
    CHECK(fi_cntr_read(pair.a->transmit[from].counter.get()) == 1);
    CHECK(fi_cntr_read(pair.b->receive[to].counter.get()) == 1);
  }
  Said more;
  for (const Lane& lane : pair.b->receive) CHECK_FALSE(pair.look(lane, more));
}

TEST_CASE("an address that names no receive context means the first one") {
  ScalablePair pair(2);
  const auto bytes = content(100, 1);
  std::vector<char> buffer(100);
  receive(pair, 0, buffer, &op_contexts[0]);
  receive(pair, 1, buffer, &op_contexts[1]);

  MUST(fi_inject(pair.a->transmit[1].handle.get(), bytes.data(), 100, pair.to_b));

  CHECK(pair.next(pair.b->receive[0]).entry.op_context == &op_contexts[0]);
  CHECK(buffer == bytes);
}

TEST_CASE("a receive may name its source by an address that names a context, too") {
  ScalablePair pair(2);
  const auto bytes = content(100, 1);
  std::vector<char> buffer(100);
  MUST(fi_recv(pair.b->receive[1].handle.get(), buffer.data(), 100, nullptr,
               fi_rx_addr(pair.to_a, 1, kContextBits), nullptr));
  send(pair, 0, 1, bytes);
  CHECK(pair.next(pair.b->receive[1]).entry.len == 100);
  CHECK(buffer == bytes);
}

TEST_CASE("contexts have one direction, and the scalable endpoint itself starts nothing") {
  ScalablePair pair(2);
  std::vector<char> buffer(8);
  fid_ep* whole = pair.a->endpoint.get();
  fid_ep* sends = pair.a->transmit[0].handle.get();
  fid_ep* receives = pair.a->receive[0].handle.get();
  fi_context with;
  for (fid_ep* one : {whole, receives}) {
    CHECK(fi_send(one, buffer.data(), 8, nullptr, pair.to_b, &with) == -FI_EOPBADSTATE);
    CHECK(fi_read(one, buffer.data(), 8, nullptr, pair.to_b, 0, 1, &with) == -FI_EOPBADSTATE);
    CHECK(fi_inject_atomic(one, buffer.data(), 1, pair.to_b, 0, 1, FI_UINT64, FI_SUM) ==
          -FI_EOPBADSTATE);
  }
  for (fid_ep* one : {whole, sends}) {
    CHECK(fi_trecv(one, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 0, 0, &with) == -FI_EOPBADSTATE);
  }
  CHECK(fi_ep_bind(whole, &pair.a->transmit[0].queue->fid, FI_TRANSMIT) == -FI_EBADFLAGS);
  CHECK(fi_tx_context(sends, 1, nullptr, &receives, nullptr) == -FI_EINVAL);
  CHECK(fi_send(sends, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, &with) == -FI_EINVAL);
}

TEST_CASE("a queue or counter of the other direction cannot be bound to a context") {
  ScalablePair pair(1);
  fi_cq_attr attributes{};
  fid_cq* opened = nullptr;
  MUST(fi_cq_open(pair.a->domain.get(), &attributes, &opened, nullptr));
  const Owned<fid_cq> queue(opened);
  pair.a->receive.clear();
  fid_ep* handle = nullptr;
  MUST(fi_rx_context(pair.a->endpoint.get(), 0, nullptr, &handle, nullptr));
  const Owned<fid_ep> again(handle);

  CHECK(fi_ep_bind(handle, &queue->fid, FI_TRANSMIT) == -FI_EBADFLAGS);
  CHECK(fi_ep_bind(handle, &pair.a->transmit[0].counter->fid, FI_SEND) == -FI_EBADFLAGS);
  CHECK(fi_ep_bind(handle, &pair.a->vector->fid, 0) == -FI_EINVAL);
  pair.a->transmit.clear();
  MUST(fi_tx_context(pair.a->endpoint.get(), 0, nullptr, &handle, nullptr));
  const Owned<fid_ep> sender(handle);
  CHECK(fi_ep_bind(handle, &queue->fid, FI_RECV) == -FI_EBADFLAGS);
}

TEST_CASE("a context describes its attributes, and refuses those it does not have") {
  ScalablePair pair(1);
  pair.a->transmit.clear();
  fi_tx_attr asked{};
  asked.inject_size = 1 << 20;
  fid_ep* handle = nullptr;
  CHECK(fi_tx_context(pair.a->endpoint.get(), 0, &asked, &handle, nullptr) == -FI_EINVAL);
  asked.inject_size = 8;
  MUST(fi_tx_context(pair.a->endpoint.get(), 0, &asked, &handle, nullptr));
  const Owned<fid_ep> open(handle);
  CHECK(asked.inject_size == pair.info->tx_attr->inject_size);
  CHECK(asked.iov_limit == pair.info->tx_attr->iov_limit);
  CHECK(asked.size == pair.info->tx_attr->size);
}

TEST_CASE("a context index out of range is neither opened nor named, and none is opened twice") {
  ScalablePair pair(2);
  fid_ep* handle = nullptr;
  for (const int index : {-1, 0, 1, 2}) {
    CHECK(fi_tx_context(pair.a->endpoint.get(), index, nullptr, &handle, nullptr) == -FI_EINVAL);
    CHECK(fi_rx_context(pair.a->endpoint.get(), index, nullptr, &handle, nullptr) == -FI_EINVAL);
  }
  const char byte = 0;
  for (const std::size_t index : {kMost, std::size_t{128}, std::size_t{255}}) {
    CHECK(fi_inject(pair.a->transmit[0].handle.get(), &byte, 1, pair.to_b_at(index)) == -FI_EINVAL);
  }
}

TEST_CASE("an endpoint with an open context stays open; a context that was closed opens again") {
  ScalablePair pair(2);
  CHECK(fi_close(&pair.b->endpoint->fid) == -FI_EBUSY);
  std::vector<char> buffer(100), other(100);
  receive(pair, 1, buffer, &op_contexts[0]);
  receive(pair, 0, other, &op_contexts[1]);
  pair.b->receive[1] = {};

  // Closing cancels what was posted; messages that arrive wait for the next context.
  const auto bytes = content(100, 1);
  send(pair, 0, 1, bytes);
  send(pair, 0, 0, bytes);
  CHECK(pair.next(pair.b->receive[0]).entry.op_context == &op_contexts[1]);
  pair.b->receive[1] = pair.b->open(FI_CLASS_RX_CTX, 1);
  CHECK(buffer == std::vector<char>(100));
  receive(pair, 1, buffer, &op_contexts[2]);
  const Said said = pair.next(pair.b->receive[1]);
  CHECK_FALSE(said.error);
  CHECK(said.entry.op_context == &op_contexts[2]);
  CHECK(buffer == bytes);

  const auto much = content(300'000, 2);
  std::vector<char> room(much.size());
  receive(pair, 0, room, &op_contexts[3]);
  send(pair, 1, 0, much);
  fid_ep* const closing = pair.a->transmit[1].handle.release();
  int result = -FI_EBUSY;  // until the message has arrived, which takes long with losses
  for (int i = 0; i < 100 && result == -FI_EBUSY; ++i) result = fi_close(&closing->fid);
  CHECK(result == 0);
  CHECK(room == much);
}

TEST_CASE("a context whose message takes too long is busy when closed, and starts no operations") {
  ScalablePair pair(1);
  Lane& lane = pair.a->transmit[0];
  const auto bytes = content(5'000'000, 1);
  std::vector<char> buffer(bytes.size());
  send(pair, 0, 0, bytes);
  CHECK(fi_close(&lane.handle->fid) == -FI_EBUSY);
  CHECK(fi_send(lane.handle.get(), bytes.data(), 8, nullptr, pair.to_b, nullptr) ==
        -FI_EOPBADSTATE);
  CHECK(fi_enable(lane.handle.get()) == -FI_EOPBADSTATE);
  CHECK(fi_ep_bind(lane.handle.get(), &lane.counter->fid, FI_WRITE) == -FI_EOPBADSTATE);

  receive(pair, 0, buffer, nullptr);
  CHECK(pair.next(pair.b->receive[0]).entry.len == bytes.size());
  CHECK(buffer == bytes);
  CHECK(fi_close(&lane.handle.release()->fid) == 0);
  pair.a->transmit[0] = pair.a->open(FI_CLASS_TX_CTX, 0);
}

TEST_CASE("a context closes although messages sent from copies have not arrived") {
  ScalablePair pair(1);
  const auto bytes = content(8000, 1);
  // An address without an endpoint.
  sockaddr_in nobody{
      .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(0x7f000001)}, .sin_zero = {}};
  fi_addr_t number = FI_ADDR_NOTAVAIL;
  REQUIRE(fi_av_insert(pair.a->vector.get(), &nobody, 1, &number, 0, nullptr) == 1);
  MUST(fi_send(pair.a->transmit[0].handle.get(), bytes.data(), bytes.size(), nullptr, number,
               &op_contexts[0]));
  CHECK(pair.next(pair.a->transmit[0]).entry.op_context == &op_contexts[0]);
  CHECK(fi_close(&pair.a->transmit[0].handle.release()->fid) == 0);
}

TEST_CASE("messages that a closed context had claimed do not block others") {
  ScalablePair pair(1);
  const auto bytes = content(200'000, 1);
  std::vector<char> buffer(bytes.size());
  for (int round = 0; round < 400; ++round) {
    send(pair, 0, 0, bytes);
    fi_msg wanted{};
    wanted.addr = FI_ADDR_UNSPEC;
    wanted.context = &op_contexts[0];
    Said said;
    for (const std::clock_t end = deadline(); std::clock() < end;) {
      MUST(fi_recvmsg(pair.b->receive[0].handle.get(), &wanted, FI_PEEK | FI_CLAIM));
      said = pair.next(pair.b->receive[0]);
      if (said.entry.err == 0) break;
    }
    REQUIRE(said.entry.len == bytes.size());
    pair.b->receive[0] = {};
    pair.b->receive[0] = pair.b->open(FI_CLASS_RX_CTX, 0);
    pair.next(pair.a->transmit[0]);
  }
  receive(pair, 0, buffer, &op_contexts[1]);
  send(pair, 0, 0, bytes);
  CHECK(pair.next(pair.b->receive[0]).entry.op_context == &op_contexts[1]);
  pair.next(pair.a->transmit[0]);
}

TEST_CASE("a queue and a counter of two contexts still serve one when the other is closed") {
  ScalablePair pair(2);
  fid_ep* handle = nullptr;
  std::vector<Lane>& lanes = pair.a->transmit;
  lanes[1].handle.reset();
  MUST(fi_tx_context(pair.a->endpoint.get(), 1, nullptr, &handle, nullptr));
  lanes[1].handle.reset(handle);
  MUST(fi_ep_bind(handle, &lanes[0].queue->fid, FI_TRANSMIT));
  MUST(fi_ep_bind(handle, &lanes[0].counter->fid, FI_SEND));
  MUST(fi_enable(handle));
  lanes[0].handle.reset();

  const auto bytes = content(300'000, 1);
  std::vector<char> buffer(bytes.size());
  receive(pair, 0, buffer, nullptr);
  MUST(fi_send(handle, bytes.data(), bytes.size(), nullptr, pair.to_b, &op_contexts[0]));
  CHECK(pair.next(lanes[0]).entry.op_context == &op_contexts[0]);
  CHECK(fi_cntr_read(lanes[0].counter.get()) == 1);
  CHECK(fi_close(&lanes[0].counter->fid) == -FI_EBUSY);
  CHECK(fi_close(&lanes[0].queue->fid) == -FI_EBUSY);
  lanes[1].handle.reset();
  CHECK(fi_close(&lanes[0].counter.release()->fid) == 0);
  CHECK(fi_close(&lanes[0].queue.release()->fid) == 0);
}

TEST_CASE("an endpoint has one counter of peers' writes, which is released with its context") {
  ScalablePair pair(2);
  fi_cntr_attr counting{};
  std::array<Owned<fid_cntr>, 2> counters;
  std::array<Owned<fid_ep>, 2> handles;
  for (int i = 0; i < 2; ++i) {
    fid_cntr* counter = nullptr;
    MUST(fi_cntr_open(pair.b->domain.get(), &counting, &counter, nullptr));
    counters[i].reset(counter);
    pair.b->receive[i].handle.reset();
    fid_ep* handle = nullptr;
    MUST(fi_rx_context(pair.b->endpoint.get(), i, nullptr, &handle, nullptr));
    handles[i].reset(handle);
  }
  MUST(fi_ep_bind(handles[0].get(), &counters[0]->fid, FI_REMOTE_WRITE));
  CHECK(fi_ep_bind(handles[1].get(), &counters[1]->fid, FI_REMOTE_WRITE) == -FI_EINVAL);
  handles[0].reset();
  CHECK(fi_close(&counters[0].release()->fid) == 0);
  CHECK(fi_ep_bind(handles[1].get(), &counters[1]->fid, FI_REMOTE_WRITE) == 0);
}

TEST_CASE("a context's alias has its own flags, and keeps the context open") {
  ScalablePair pair(1);
  fid_ep* handle = pair.a->transmit[0].handle.get();
  fid_ep* opened = nullptr;
  MUST(fi_ep_alias(handle, &opened, FI_TRANSMIT | FI_DELIVERY_COMPLETE));
  const auto bytes = content(100, 1);
  std::vector<char> buffer(100);
  receive(pair, 0, buffer, nullptr);
  MUST(fi_send(opened, bytes.data(), 100, nullptr, pair.to_b, &op_contexts[0]));
  CHECK(pair.next(pair.a->transmit[0]).entry.op_context == &op_contexts[0]);
  CHECK(buffer == bytes);
  CHECK(fi_ep_bind(opened, &pair.a->vector->fid, 0) == -FI_EOPBADSTATE);
  CHECK(fi_close(&handle->fid) == -FI_EBUSY);
  CHECK(fi_close(&opened->fid) == 0);
  CHECK(fi_close(&pair.a->transmit[0].handle.release()->fid) == 0);
}

TEST_CASE("a context that is opened again has the endpoint's options, not its earlier ones") {
  ScalablePair pair(1);
  std::size_t least = 0, length = sizeof least;
  const auto read = [&] {
    MUST(fi_getopt(&pair.a->receive[0].handle->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                   &length));
    return least;
  };
  const std::size_t usual = read();
  const std::size_t other = usual + 1;
  MUST(fi_setopt(&pair.a->receive[0].handle->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &other,
                 length));
  CHECK(read() == other);
  pair.a->receive[0] = {};
  pair.a->receive[0] = pair.a->open(FI_CLASS_RX_CTX, 0);
  CHECK(read() == usual);
}

TEST_CASE("a receive is cancelled through the context it was posted to") {
  ScalablePair pair(2);
  std::vector<char> buffer(8);
  receive(pair, 0, buffer, op_contexts);
  receive(pair, 1, buffer, op_contexts);
  MUST(fi_cancel(&pair.b->receive[1].handle->fid, op_contexts));

  CHECK(pair.next(pair.b->receive[1]).entry.err == FI_ECANCELED);
  const auto first = content(8, 1);
  send(pair, 0, 0, first);
  const Said said = pair.next(pair.b->receive[0]);
  CHECK_FALSE(said.error);
  CHECK(fi_cancel(&pair.b->receive[1].handle->fid, op_contexts) == -FI_ENOENT);
}

TEST_CASE("each receive context has its own multi-receive buffers and peeks") {
  ScalablePair pair(2);
  std::array<std::vector<char>, 2> buffers = {std::vector<char>(300), std::vector<char>(300)};
  for (std::size_t at = 0; at < 2; ++at) {
    fid_ep* handle = pair.b->receive[at].handle.get();
    const std::size_t least = 100;
    MUST(fi_setopt(&handle->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    const iovec piece{buffers[at].data(), 300};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &op_contexts[at];
    MUST(fi_recvmsg(handle, &message, FI_MULTI_RECV));
  }
  for (const int salt : {1, 2, 3}) {
    for (const std::size_t to : {std::size_t{1}, std::size_t{0}}) {
      send(pair, 0, to, content(100, salt + 10 * static_cast<int>(to)));
    }
  }
  for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
    for (int i = 0; i < 3; ++i) {
      const Said said = pair.next(pair.b->receive[at]);
      CHECK(said.entry.op_context == &op_contexts[at]);
      CHECK(said.entry.buf == buffers[at].data() + 100 * i);
      CHECK(((said.entry.flags & FI_MULTI_RECV) != 0) == (i == 2));
      const auto bytes = content(100, i + 1 + 10 * static_cast<int>(at));
      CHECK(std::equal(bytes.begin(), bytes.end(), static_cast<char*>(said.entry.buf)));
    }
  }

  const auto bytes = content(50, 9);
  MUST(fi_tinject(pair.a->transmit[0].handle.get(), bytes.data(), 50, pair.to_b_at(1), 7));
  fi_msg_tagged wanted{};
  wanted.addr = FI_ADDR_UNSPEC;
  wanted.tag = 7;
  const auto peek = [&](std::size_t at) {
    MUST(fi_trecvmsg(pair.b->receive[at].handle.get(), &wanted, FI_PEEK));
    return pair.next(pair.b->receive[at]);
  };
  const std::clock_t end = deadline();
  Said found = peek(1);
  while (found.entry.err == FI_ENOMSG && std::clock() < end) found = peek(1);
  CHECK(found.entry.len == 50);
  CHECK(peek(0).entry.err == FI_ENOMSG);
}

TEST_CASE(
    "a buffer cancelled during a message is given back with it, and the next one takes over") {
  ScalablePair pair(2);
  std::vector<char> first(1000), long_one(30'000'000), behind(1000);
  const auto post = [&](std::size_t at, std::vector<char>& buffer, void* with) {
    const iovec piece{buffer.data(), buffer.size()};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = with;
    MUST(fi_recvmsg(pair.b->receive[at].handle.get(), &message, FI_MULTI_RECV));
  };
  post(0, first, &op_contexts[0]);
  post(1, long_one, &op_contexts[1]);
  post(1, behind, &op_contexts[2]);
  const auto bytes = content(20'000'000, 1), other = content(100, 2), last = content(500, 3);
  send(pair, 0, 1, bytes);
  const std::clock_t end = deadline();
  while (glimpse(long_one[100]) != bytes[100] && std::clock() < end) pair.turn();
  MUST(fi_cancel(&pair.b->receive[1].handle->fid, &op_contexts[1]));
  send(pair, 1, 0, other);
  CHECK(pair.next(pair.b->receive[0]).entry.op_context == &op_contexts[0]);

  Said said = pair.next(pair.b->receive[1]);
  CHECK(said.entry.op_context == &op_contexts[1]);
  CHECK(said.entry.buf == long_one.data());
  CHECK((said.entry.flags & FI_MULTI_RECV) != 0);
  CHECK(std::equal(bytes.begin(), bytes.end(), long_one.begin()));
  send(pair, 0, 1, last);
  said = pair.next(pair.b->receive[1]);
  CHECK(said.entry.op_context == &op_contexts[2]);
  CHECK(said.entry.buf == behind.data());
  CHECK(std::equal(last.begin(), last.end(), behind.begin()));
}

TEST_CASE("memory is read, written and updated through any transmit context") {
  ScalablePair pair(3);
  std::vector<std::byte> memory(4096);
  const auto region = lend(pair.b->domain.get(), memory, 5);
  CHECK(fi_mr_bind(region.get(), &pair.b->endpoint->fid, 0) == 0);
  const auto bytes = content(64, 1);
  std::vector<char> back(64);
  fid_ep* by = pair.a->transmit[2].handle.get();
  MUST(fi_writedata(by, bytes.data(), 64, nullptr, 77, pair.to_b_at(1), 8, 5, &op_contexts[0]));
  CHECK(pair.next(pair.a->transmit[2]).entry.op_context == &op_contexts[0]);
  CHECK(std::memcmp(memory.data() + 8, bytes.data(), 64) == 0);
  MUST(fi_read(by, back.data(), 64, nullptr, pair.to_b_at(2), 8, 5, &op_contexts[1]));
  CHECK(pair.next(pair.a->transmit[2]).entry.op_context == &op_contexts[1]);
  CHECK(back == bytes);
  const std::uint64_t one = 1;
  std::uint64_t before = 1;
  MUST(fi_fetch_atomic(by, &one, 1, nullptr, &before, nullptr, pair.to_b_at(2), 1024, 5, FI_UINT64,
                       FI_SUM, &op_contexts[2]));
  CHECK(pair.next(pair.a->transmit[2]).entry.op_context == &op_contexts[2]);
  CHECK(before == 0);

  // A write names no receive context: immediate data is reported at the first one.
  const Said said = pair.next(pair.b->receive[0]);
  CHECK(said.entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
  CHECK(said.entry.data == 77);
}

TEST_CASE("operations of contexts can be deferred, and are dropped with their context") {
  ScalablePair pair(2);
  const auto bytes = content(100, 1);
  std::vector<char> buffer(100);
  receive(pair, 1, buffer, &op_contexts[0]);
  std::vector<char> other(100);
  receive(pair, 0, other, &op_contexts[1]);
  fi_cntr_attr counting{};
  fid_cntr* opened = nullptr;
  MUST(fi_cntr_open(pair.a->domain.get(), &counting, &opened, nullptr));
  const Owned<fid_cntr> trigger(opened);
  std::array<fi_triggered_context, 2> when{};
  for (std::size_t by = 0; by < 2; ++by) {
    when[by].event_type = FI_TRIGGER_THRESHOLD;
    when[by].trigger.threshold = {.cntr = trigger.get(), .threshold = 1};
    const iovec piece{const_cast<char*>(bytes.data()), 100};
    fi_msg message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = pair.to_b_at(by);
    message.context = &when[by];
    MUST(fi_sendmsg(pair.a->transmit[by].handle.get(), &message, FI_TRIGGER));
  }
  pair.a->transmit[0] = {};  // its operation never begins, nor in the next context of that index
  pair.a->transmit[0] = pair.a->open(FI_CLASS_TX_CTX, 0);
  MUST(fi_cntr_add(trigger.get(), 1));

  CHECK(pair.next(pair.b->receive[1]).entry.op_context == &op_contexts[0]);
  CHECK(buffer == bytes);
  CHECK(pair.next(pair.a->transmit[1]).entry.op_context == &when[1]);
  pair.turn(500);
  Said said;
  CHECK_FALSE(pair.look(pair.b->receive[0], said));
}

}  // namespace pullman::test
