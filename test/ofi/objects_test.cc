// The objects around messages: information, queues, counters, vectors, aliases.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_rma.h>

#include <thread>

#include "pair.h"

namespace pullman::test {

TEST_CASE("the provider offers reliable datagrams only, and reports its capabilities") {
  Info hints = hints_for(FI_TAGGED);
  const Info info = find(hints);
  REQUIRE(info != nullptr);
  CHECK(std::string(info->fabric_attr->prov_name) == "pullman");
  CHECK(info->mode == 0);
  CHECK(info->domain_attr->mr_mode == 0);
  CHECK(info->ep_attr->mem_tag_format == 0xAAAAAAAAAAAAAAAA);
  CHECK((info->tx_attr->msg_order & FI_ORDER_SAS) != 0);

  for (const fi_ep_type type : {FI_EP_DGRAM, FI_EP_MSG}) {
    hints->ep_attr->type = type;
    CHECK(find(hints) == nullptr);
  }
}

TEST_CASE("FI_NAMED_RX_CTX is offered to senders, whatever was asked for") {
  const auto is_named_by_senders_only = [](const fi_info& info, bool offered) {
    CHECK(((info.tx_attr->caps & FI_NAMED_RX_CTX) != 0) == offered);
    CHECK((info.rx_attr->caps & FI_NAMED_RX_CTX) == 0);
  };
  fi_info* found = nullptr;
  MUST(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &found));
  const Info unasked(found);
  int ours = 0;
  for (const fi_info* info = unasked.get(); info != nullptr; info = info->next) {
    if (std::string(info->fabric_attr->prov_name) != "pullman") continue;
    is_named_by_senders_only(*info, true);
    ++ours;
  }
  CHECK(ours > 0);

  struct Ask {
    std::uint64_t caps;
    bool offered;
  };
  for (const Ask ask :
       {Ask{0, true}, Ask{FI_TAGGED | FI_NAMED_RX_CTX, true}, Ask{FI_TAGGED, false}}) {
    Info hints = hints_for(ask.caps);
    hints->rx_attr->caps = ask.caps;
    const Info info = find(hints);
    REQUIRE(info != nullptr);
    is_named_by_senders_only(*info, ask.offered);
    // The capabilities of a side are among the endpoint's.
    CHECK((info->tx_attr->caps & ~info->caps) == 0);
    CHECK((info->rx_attr->caps & ~info->caps) == 0);
    CHECK((ask.caps & ~info->caps) == 0);
  }
}

TEST_CASE("fi_info describes the NIC of the first rail, and fi_dupinfo copies it", "[loopback]") {
  const Info info = find(hints_for(FI_TAGGED));
  REQUIRE(info != nullptr);
  REQUIRE(info->nic != nullptr);
  const Info copy(fi_dupinfo(info.get()));

  for (const fid_nic* nic : {info->nic, copy->nic}) {
    CHECK(std::string(nic->device_attr->name) == "lo");
    CHECK(std::string(nic->link_attr->address) == "127.0.0.1");
    CHECK(std::string(nic->link_attr->network_type) == "loopback");
    CHECK(nic->link_attr->state == FI_LINK_UP);
    CHECK(nic->link_attr->mtu > 0);
    CHECK(nic->bus_attr->bus_type == FI_BUS_UNKNOWN);
  }
  CHECK(copy->nic->device_attr->name != info->nic->device_attr->name);
  CHECK(std::string(fi_tostr(info.get(), FI_TYPE_INFO)).find("name: lo\n") != std::string::npos);
}

TEST_CASE("a destination on the loopback selects the loopback if no NIC is named") {
  const std::string asked = getenv("PULLMAN_NICS");
  unsetenv("PULLMAN_NICS");
  const Info hints = hints_for(FI_TAGGED);
  fi_info* found = nullptr;
  MUST(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7000", 0, hints.get(), &found));
  const Info info(found);
  setenv("PULLMAN_NICS", asked.c_str(), 1);

  REQUIRE(info->nic != nullptr);
  CHECK(std::string(info->nic->device_attr->name) == "lo");
}

TEST_CASE("hints that cannot be met are refused") {
  Info hints = hints_for(FI_TAGGED | FI_MULTICAST);
  CHECK(find(hints) == nullptr);
  hints = hints_for(FI_TAGGED);
  hints->tx_attr->inject_size = 1 << 20;
  CHECK(find(hints) == nullptr);
  hints = hints_for(FI_TAGGED);
  hints->ep_attr->tx_ctx_cnt = 17;
  CHECK(find(hints) == nullptr);
  hints->ep_attr->tx_ctx_cnt = 2;
  hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  CHECK(find(hints) == nullptr);
  hints = hints_for(FI_RMA);
  hints->tx_attr->rma_iov_limit = 2;
  CHECK(find(hints) == nullptr);
}

TEST_CASE("a queue is bound to sends, to receives, or to both") {
  Pair pair;
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(pair.a->domain.get(), pair.info.get(), &opened, nullptr));
  const Owned<fid_ep> endpoint(opened);
  CHECK(fi_ep_bind(opened, &pair.a->completions->fid, 0) == -FI_EBADFLAGS);
  CHECK(fi_ep_bind(opened, &pair.a->completions->fid, FI_SELECTIVE_COMPLETION) == -FI_EBADFLAGS);
}

TEST_CASE("a setting out of its range is refused when NICs are opened") {
  Pair pair;
  for (const char* text : {"abc", "2x", "", "-1", "0", "9", "99999999999999999999"}) {
    setenv("FI_PULLMAN_MAX_NICS", text, 1);
    fid_ep* opened = nullptr;
    MUST(fi_endpoint(pair.a->domain.get(), pair.info.get(), &opened, nullptr));
    const Owned<fid_ep> endpoint(opened);
    MUST(fi_ep_bind(opened, &pair.a->vector->fid, 0));
    CHECK(fi_enable(opened) == -FI_EINVAL);
    unsetenv("FI_PULLMAN_MAX_NICS");
    CHECK(fi_enable(opened) == 0);
  }
}

TEST_CASE("an endpoint is enabled with a setting of a million peers") {
  Pair pair;
  setenv("FI_PULLMAN_MAX_PEERS", "1000000", 1);
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(pair.a->domain.get(), pair.info.get(), &opened, nullptr));
  const Owned<fid_ep> endpoint(opened);
  MUST(fi_ep_bind(opened, &pair.a->vector->fid, 0));
  CHECK(fi_enable(opened) == 0);
  unsetenv("FI_PULLMAN_MAX_PEERS");
}

TEST_CASE("objects of another domain cannot be bound") {
  Pair pair;
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(pair.a->domain.get(), pair.info.get(), &opened, nullptr));
  const Owned<fid_ep> endpoint(opened);
  CHECK(fi_ep_bind(opened, &pair.b->completions->fid, FI_TRANSMIT) == -FI_EDOMAIN);
  CHECK(fi_ep_bind(opened, &pair.b->received->fid, FI_RECV) == -FI_EDOMAIN);
  CHECK(fi_ep_bind(opened, &pair.b->vector->fid, 0) == -FI_EDOMAIN);

  std::array<std::byte, 8> bytes{};
  const auto region = lend(pair.a->domain.get(), bytes, 7);
  CHECK(fi_mr_bind(region.get(), &pair.b->received->fid, FI_REMOTE_WRITE) == -FI_EDOMAIN);
  fi_poll_attr attributes{};
  fid_poll* set = nullptr;
  MUST(fi_poll_open(pair.a->domain.get(), &attributes, &set));
  const Owned<fid_poll> owned(set);
  CHECK(fi_poll_add(set, &pair.b->completions->fid, 0) == -FI_EDOMAIN);
}

TEST_CASE("one thread may close an endpoint while another closes its queue") {
  for (int round = 0; round < 100; ++round) {
    Pair pair({.threading = FI_THREAD_SAFE});
    fid_ep* const endpoint = pair.a->endpoint.release();
    fid_cq* const queue = pair.a->completions.release();
    std::thread closer([&] {
      while (fi_close(&queue->fid) == -FI_EBUSY) std::this_thread::yield();
    });
    CHECK(fi_close(&endpoint->fid) == 0);
    closer.join();
  }
}

TEST_CASE("the threading and progress that an application asks for are returned") {
  for (const fi_threading threading : {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION}) {
    Info hints = hints_for(FI_TAGGED);
    hints->domain_attr->threading = threading;
    hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
    const Info info = find(hints);
    REQUIRE(info != nullptr);
    CHECK(info->domain_attr->threading == threading);
    CHECK(info->domain_attr->data_progress == FI_PROGRESS_AUTO);
  }
}

TEST_CASE("a completion queue of a hundred entries keeps a thousand") {
  Pair pair;
  const std::vector<char> sent(8);
  std::vector<char> received(8);
  for (int i = 0; i < 1000; ++i) {
    MUST(fi_trecv(pair.b->endpoint.get(), received.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));
  }
  for (int i = 0; i < 1000; ++i) {
    MUST(fi_tinject(pair.a->endpoint.get(), sent.data(), 8, pair.to_b, 7));
  }
  while (fi_cntr_read(pair.b->received.get()) < 1000) pair.turn(1);

  int read = 0;
  std::array<fi_cq_tagged_entry, 100> entries;
  for (ssize_t got = 0; (got = fi_cq_read(pair.b->completions.get(), entries.data(), 100)) > 0;) {
    read += static_cast<int>(got);
  }
  CHECK(read == 1000);
}

TEST_CASE("with selective completion only operations with FI_COMPLETION complete") {
  Pair pair({.bind_flags = FI_SELECTIVE_COMPLETION});
  int marked = 0;
  std::vector<char> bytes(8);
  MUST(fi_tsend(pair.a->endpoint.get(), bytes.data(), 8, nullptr, pair.to_b, 1, nullptr));
  const iovec piece{bytes.data(), 8};
  fi_msg_tagged message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = pair.to_b;
  message.context = &marked;

  MUST(fi_tsendmsg(pair.a->endpoint.get(), &message, FI_COMPLETION));

  CHECK(pair.next(*pair.a).entry.op_context == &marked);
  Said said;
  CHECK_FALSE(pair.a->look(said));
}

TEST_CASE("an alias sends with flags of its own") {
  Pair pair({.bind_flags = FI_SELECTIVE_COMPLETION});
  fid_ep* alias = nullptr;
  MUST(fi_ep_alias(pair.a->endpoint.get(), &alias, FI_TRANSMIT | FI_COMPLETION));
  int marked = 0;

  MUST(fi_tsend(alias, nullptr, 0, nullptr, pair.to_b, 1, &marked));

  CHECK(pair.next(*pair.a).entry.op_context == &marked);
  CHECK(fi_close(&pair.a->endpoint->fid) == -FI_EBUSY);
  MUST(fi_close(&alias->fid));
}

TEST_CASE(
    "addresses are inserted, looked up, written as text, removed; their number is used again") {
  Pair pair;
  const auto name = pair.b->name();
  sockaddr_in found{};
  std::size_t length = sizeof found;
  MUST(fi_av_lookup(pair.a->vector.get(), pair.to_b, &found, &length));
  CHECK(length == sizeof found);
  CHECK(std::memcmp(&found, name.data(), name.size()) == 0);
  std::array<char, 64> text{};
  length = text.size();
  fi_av_straddr(pair.a->vector.get(), name.data(), text.data(), &length);
  const std::string host = inet_ntoa(found.sin_addr);
  CHECK(std::string(text.data()).starts_with("fi_sockaddr_in://" + host + ":"));

  fi_addr_t number = pair.to_b;
  MUST(fi_av_remove(pair.a->vector.get(), &number, 1, 0));
  CHECK(fi_av_lookup(pair.a->vector.get(), number, &found, &length) == -FI_EINVAL);
  CHECK(fi_tsend(pair.a->endpoint.get(), nullptr, 0, nullptr, number, 1, nullptr) == -FI_EINVAL);
  CHECK(pair.a->insert(name) == number);
}

TEST_CASE("several services of several nodes are inserted by one call") {
  Pair pair;
  std::array<fi_addr_t, 6> numbers{};
  CHECK(fi_av_insertsym(pair.a->vector.get(), "127.0.0.1", 2, "7000", 3, numbers.data(), 0,
                        nullptr) == 6);
  sockaddr_in last{};
  std::size_t length = sizeof last;
  MUST(fi_av_lookup(pair.a->vector.get(), numbers[5], &last, &length));
  CHECK(ntohl(last.sin_addr.s_addr) == 0x7F000002);
  CHECK(ntohs(last.sin_port) == 7002);
}

TEST_CASE("a service beyond the highest port is no address, and those below it are") {
  Pair pair;
  fid_av* const vector = pair.a->vector.get();
  fi_addr_t number = 0;
  CHECK(fi_av_insertsvc(vector, "127.0.0.1", "70000", &number, 0, nullptr) == 0);
  CHECK(number == FI_ADDR_NOTAVAIL);
  CHECK(fi_av_insertsvc(vector, "127.0.0.1", "99999999999999999999", &number, 0, nullptr) == 0);
  CHECK(fi_av_insertsvc(vector, "127.0.0.1", "65535", &number, 0, nullptr) == 1);

  std::array<fi_addr_t, 4> numbers{};
  CHECK(fi_av_insertsym(vector, "127.0.0.1", 1, "65534", 4, numbers.data(), 0, nullptr) == 2);
  CHECK(numbers[1] != FI_ADDR_NOTAVAIL);
  CHECK(numbers[2] == FI_ADDR_NOTAVAIL);
  CHECK(numbers[3] == FI_ADDR_NOTAVAIL);
  CHECK(fi_av_insertsym(vector, "n99999999999999999999999", 2, "7000", 1, numbers.data(), 0,
                        nullptr) == 0);
}

TEST_CASE(
    "an endpoint whose name was read before its vector was bound knows the vector's addresses") {
  const auto pair = patient_pair({});
  const auto name = pair->b->name();
  Side& a = *pair->a;
  fid_ep* opened = nullptr;
  MUST(fi_endpoint(a.domain.get(), pair->info.get(), &opened, nullptr));
  const Owned<fid_ep> early(opened);
  std::array<char, 64> own{};
  std::size_t length = own.size();
  MUST(fi_getname(&early->fid, own.data(), &length));
  MUST(fi_ep_bind(early.get(), &a.vector->fid, 0));
  MUST(fi_ep_bind(early.get(), &a.completions->fid, FI_TRANSMIT | FI_RECV));
  MUST(fi_enable(early.get()));

  MUST(fi_tsend(early.get(), nullptr, 0, nullptr, pair->to_b, 1, nullptr));
  MUST(fi_trecv(pair->b->endpoint.get(), nullptr, 0, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr));
  CHECK_FALSE(pair->next(*pair->b).error);
}

TEST_CASE(
    "a message beyond the maximum length is refused, also if the sum of its segments overflows") {
  Pair pair({.caps = FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE});
  fid_ep* const endpoint = pair.a->endpoint.get();
  std::array<char, 8> bytes{};
  const std::size_t longest = pair.info->ep_attr->max_msg_size;
  CHECK(fi_tsend(endpoint, bytes.data(), longest + 1, nullptr, pair.to_b, 1, nullptr) ==
        -FI_EINVAL);
  CHECK(fi_write(endpoint, bytes.data(), longest + 1, nullptr, pair.to_b, 0, 7, nullptr) ==
        -FI_EINVAL);
  CHECK(fi_read(endpoint, bytes.data(), longest + 1, nullptr, pair.to_b, 0, 7, nullptr) ==
        -FI_EINVAL);
  const std::array<iovec, 2> segments{{{bytes.data(), SIZE_MAX}, {bytes.data(), 9}}};
  CHECK(fi_tsendv(endpoint, segments.data(), nullptr, 2, pair.to_b, 1, nullptr) == -FI_EINVAL);
  CHECK(fi_writev(endpoint, segments.data(), nullptr, 2, pair.to_b, 0, 7, nullptr) == -FI_EINVAL);
}

TEST_CASE("fi_cq_sread sleeps until a message comes or its timeout is over") {
  Pair pair({.wait = FI_WAIT_FD});
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_sread(pair.b->completions.get(), &entry, 1, nullptr, 20) == -FI_EAGAIN);
  const std::vector<char> sent(8);
  std::vector<char> received(8);
  MUST(fi_trecv(pair.b->endpoint.get(), received.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));

  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MUST(fi_tinject(pair.a->endpoint.get(), sent.data(), 8, pair.to_b, 7));
    for (int i = 0; i < 20000 && fi_cq_read(pair.a->completions.get(), nullptr, 0); ++i) {
    }
  });

  CHECK(fi_cq_sread(pair.b->completions.get(), &entry, 1, nullptr, 20000) == 1);
  sender.join();
}

TEST_CASE("the descriptor of a queue becomes readable when a message comes") {
  const auto patient = patient_pair({.wait = FI_WAIT_FD});
  Pair& pair = *patient;
  const std::vector<char> sent(8);
  std::vector<char> received(8);
  MUST(fi_trecv(pair.b->endpoint.get(), received.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));
  pair.turn();
  int descriptor = -1;
  MUST(fi_control(&pair.b->completions->fid, FI_GETWAIT, &descriptor));
  fid* waited[] = {&pair.b->completions->fid};
  while (fi_trywait(pair.fabric.get(), waited, 1) == -FI_EAGAIN) pair.turn(1);

  MUST(fi_tinject(pair.a->endpoint.get(), sent.data(), 8, pair.to_b, 7));

  CHECK(wakes(pair, descriptor));
  CHECK(pair.next(*pair.b).entry.len == 8);
}

TEST_CASE(
    "a thread asleep on a queue is woken although another thread has long polled its endpoint") {
  const auto patient = patient_pair({.wait = FI_WAIT_FD});
  Pair& pair = *patient;
  const std::vector<char> sent(8);
  std::vector<char> received(8);
  MUST(fi_trecv(pair.b->endpoint.get(), received.data(), 8, nullptr, pair.to_a, 7, 0, nullptr));
  pair.turn();
  int descriptor = -1;
  MUST(fi_control(&pair.b->completions->fid, FI_GETWAIT, &descriptor));
  fid* waited[] = {&pair.b->completions->fid};
  while (fi_trywait(pair.fabric.get(), waited, 1) == -FI_EAGAIN) pair.turn(1);
  for (int i = 0; i < 3000; ++i) fi_cntr_read(pair.b->received.get());

  MUST(fi_tinject(pair.a->endpoint.get(), sent.data(), 8, pair.to_b, 7));

  CHECK(wakes(pair, descriptor));
  CHECK(pair.next(*pair.b).entry.len == 8);
}

TEST_CASE("objects in use cannot be closed") {
  Pair pair;
  CHECK(fi_close(&pair.b->completions->fid) == -FI_EBUSY);
  CHECK(fi_close(&pair.b->vector->fid) == -FI_EBUSY);
  CHECK(fi_close(&pair.b->domain->fid) == -FI_EBUSY);
  CHECK(fi_close(&pair.fabric->fid) == -FI_EBUSY);
}

TEST_CASE("registered memory has the requested key, and no key is used twice") {
  Pair pair;
  std::vector<char> bytes(4096);
  fid_mr* region = nullptr;
  fid_mr* other = nullptr;
  MUST(fi_mr_reg(pair.a->domain.get(), bytes.data(), bytes.size(), FI_REMOTE_READ, 0, 77, 0,
                 &region, nullptr));
  CHECK(fi_mr_key(region) == 77);
  CHECK(fi_mr_reg(pair.a->domain.get(), bytes.data(), bytes.size(), FI_REMOTE_READ, 0, 77, 0,
                  &other, nullptr) == -FI_ENOKEY);
  MUST(fi_close(&region->fid));
}

}  // namespace pullman::test
