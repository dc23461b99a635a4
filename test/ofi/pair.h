// Two endpoints of this process on the loopback, through libfabric's interface: the base of each
// test.
#pragma once

#include <poll.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace pullman::test {

// What operations are given as their contexts: only the addresses count.
inline int op_contexts[16];

inline void must(ssize_t result, const char* what) {
  if (result < 0)
    throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-result)));
}
#define MUST(call) ::pullman::test::must(call, #call)

struct CloseFid {
  template <typename Handle>
  void operator()(Handle* handle) const {
    fi_close(&handle->fid);
  }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, CloseFid>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

inline Info hints_for(std::uint64_t caps) {
  Info hints(fi_allocinfo());
  hints->caps = caps;
  hints->fabric_attr->prov_name = strdup("pullman");
  hints->ep_attr->type = FI_EP_RDM;
  return hints;
}

// Returns null if the provider does not offer that.
inline Info find(const Info& hints) {
  fi_info* found = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
  return Info(result == 0 ? found : nullptr);
}

struct Options {
  std::uint64_t caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
  fi_cq_format format = FI_CQ_FORMAT_TAGGED;
  fi_wait_obj wait = FI_WAIT_NONE;
  std::uint64_t bind_flags = 0;  // FI_SELECTIVE_COMPLETION
  fi_av_type vector = FI_AV_TABLE;
  fi_progress progress = FI_PROGRESS_MANUAL;
  fi_threading threading = FI_THREAD_DOMAIN;
  std::uint64_t counted = FI_RECV;  // operations counted by Side::received
};

// Registers memory that peers may access under `key`.
inline Owned<fid_mr> lend(fid_domain* domain, std::span<std::byte> bytes, std::uint64_t key,
                          std::uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE) {
  fid_mr* region = nullptr;
  MUST(fi_mr_reg(domain, bytes.data(), bytes.size(), access, 0, key, 0, &region, nullptr));
  return Owned<fid_mr>(region);
}

// An entry of a completion queue, success or error.
struct Said {
  fi_cq_err_entry entry{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  bool error = false;
};

class Side {
 public:
  Side(fid_fabric* fabric, fi_info* info, const Options& options) {
    fid_domain* opened = nullptr;
    MUST(fi_domain(fabric, info, &opened, nullptr));
    domain.reset(opened);
    fi_cq_attr queue{};
    queue.format = options.format;
    queue.wait_obj = options.wait;
    if (options.wait == FI_WAIT_SET) {
      fi_wait_attr by_descriptor{};
      by_descriptor.wait_obj = FI_WAIT_FD;
      fid_wait* opened_set = nullptr;
      MUST(fi_wait_open(fabric, &by_descriptor, &opened_set));
      set.reset(opened_set);
      queue.wait_set = opened_set;
    }
    fid_cq* opened_queue = nullptr;
    MUST(fi_cq_open(domain.get(), &queue, &opened_queue, nullptr));
    completions.reset(opened_queue);
    fi_av_attr addresses{};
    addresses.type = options.vector;
    fid_av* opened_vector = nullptr;
    MUST(fi_av_open(domain.get(), &addresses, &opened_vector, nullptr));
    vector.reset(opened_vector);
    fid_ep* opened_endpoint = nullptr;
    MUST(fi_endpoint(domain.get(), info, &opened_endpoint, nullptr));
    endpoint.reset(opened_endpoint);
    MUST(fi_ep_bind(endpoint.get(), &vector->fid, 0));
    MUST(fi_ep_bind(endpoint.get(), &completions->fid, FI_TRANSMIT | FI_RECV | options.bind_flags));
    fi_cntr_attr counting{};
    fid_cntr* counter = nullptr;
    MUST(fi_cntr_open(domain.get(), &counting, &counter, nullptr));
    received.reset(counter);
    MUST(fi_ep_bind(endpoint.get(), &received->fid, options.counted));
    if ((options.caps & FI_RMA_EVENT) != 0) {
      for (Owned<fid_cntr>* remote : {&remote_reads, &remote_writes}) {
        MUST(fi_cntr_open(domain.get(), &counting, &counter, nullptr));
        remote->reset(counter);
      }
      MUST(fi_ep_bind(endpoint.get(), &remote_reads->fid, FI_REMOTE_READ));
      MUST(fi_ep_bind(endpoint.get(), &remote_writes->fid, FI_REMOTE_WRITE));
    }
    MUST(fi_enable(endpoint.get()));
  }

  std::vector<char> name() const {
    std::size_t length = 0;
    REQUIRE(fi_getname(&endpoint->fid, nullptr, &length) == -FI_ETOOSMALL);
    std::vector<char> bytes(length);
    MUST(fi_getname(&endpoint->fid, bytes.data(), &length));
    return bytes;
  }

  fi_addr_t insert(const std::vector<char>& address) {
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    REQUIRE(fi_av_insert(vector.get(), address.data(), 1, &number, 0, nullptr) == 1);
    return number;
  }

  // Reads the next entry of its queue, if there is one.
  bool look(Said& said) {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_readfrom(completions.get(), &entry, 1, &said.source);
    if (result == -FI_EAGAIN) return false;
    said.error = result == -FI_EAVAIL;
    if (said.error) {
      REQUIRE(fi_cq_readerr(completions.get(), &said.entry, 0) == 1);
      return true;
    }
    REQUIRE(result == 1);
    std::memcpy(&said.entry, &entry, sizeof entry);
    return true;
  }

  // Closed in reverse order.
  Owned<fid_domain> domain;
  Owned<fid_wait> set;  // with FI_WAIT_SET
  Owned<fid_cq> completions;
  Owned<fid_av> vector;
  Owned<fid_cntr> received;
  Owned<fid_cntr> remote_reads;  // with FI_RMA_EVENT
  Owned<fid_cntr> remote_writes;
  Owned<fid_ep> endpoint;
};

// When a polling loop has used a minute of this process's processor time; a shared machine may
// stand still for longer in real time.
inline std::clock_t deadline() {
  return std::clock() + 60 * CLOCKS_PER_SEC;
}

// Keeps bytes of sends alive longer than the endpoints: a receiver of a message does not know
// whether its ACK has arrived.
class Keeper {
 public:
  const std::vector<char>& keep(std::vector<char> bytes) {
    return kept_.emplace_back(std::move(bytes));
  }

 private:
  std::deque<std::vector<char>> kept_;
};

class Pair : public Keeper {
 public:
  explicit Pair(const Options& options = {}) {
    Info hints = hints_for(options.caps);
    hints->domain_attr->data_progress = options.progress;
    hints->domain_attr->threading = options.threading;
    info = find(hints);
    REQUIRE(info != nullptr);
    fid_fabric* opened = nullptr;
    MUST(fi_fabric(info->fabric_attr, &opened, nullptr));
    fabric.reset(opened);
    a = std::make_unique<Side>(fabric.get(), info.get(), options);
    b = std::make_unique<Side>(fabric.get(), info.get(), options);
    to_b = a->insert(b->name());
    to_a = b->insert(a->name());
  }

  // Returns the next entry of `side`, while both sides make progress.
  Said next(Side& side) {
    Side& other = &side == a.get() ? *b : *a;
    Said said;
    const std::clock_t end = deadline();
    while (!side.look(said)) {
      fi_cq_read(other.completions.get(), nullptr, 0);
      if (std::clock() > end) throw std::runtime_error("nothing came");
    }
    // Takes the lock under which the other side's thread has written to memory.
    fi_cq_read(other.completions.get(), nullptr, 0);
    return said;
  }

  // Peeks at b with `flags` until the message is found: a packet may have been lost.
  Said find_at_b(const fi_msg_tagged& wanted, std::uint64_t flags = 0) {
    for (const std::clock_t end = deadline();;) {
      MUST(fi_trecvmsg(b->endpoint.get(), &wanted, FI_PEEK | flags));
      const Said said = next(*b);
      if (said.entry.err != FI_ENOMSG || std::clock() > end) return said;
    }
  }

  // Makes progress at both sides for a while.
  void turn(int times = 50) {
    for (int i = 0; i < times; ++i) {
      fi_cq_read(a->completions.get(), nullptr, 0);
      fi_cq_read(b->completions.get(), nullptr, 0);
    }
  }

  Info info;
  Owned<fid_fabric> fabric;
  std::unique_ptr<Side> a;
  std::unique_ptr<Side> b;
  fi_addr_t to_a = FI_ADDR_NOTAVAIL;
  fi_addr_t to_b = FI_ADDR_NOTAVAIL;
};

// Waits until the counter has that value, while both sides make progress.
inline void wait_for(Pair& pair, const Owned<fid_cntr>& counter, std::uint64_t value) {
  for (const std::clock_t end = deadline(); fi_cntr_read(counter.get()) < value;) {
    pair.turn(1);
    if (std::clock() > end) throw std::runtime_error("the counter stands still");
  }
}

// Returns whether b's descriptor becomes readable while only a makes progress, so that it may
// retransmit.
inline bool wakes(Pair& pair, int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  for (const std::clock_t end = deadline(); poll(&one, 1, 0) == 0;) {
    if (std::clock() > end) return false;
    fi_cq_read(pair.a->completions.get(), nullptr, 0);
  }
  return true;
}

// Returns a pair whose progress threads do not step in.
inline std::unique_ptr<Pair> patient_pair(const Options& options = {}) {
  setenv("FI_PULLMAN_PATIENCE", "60000", 1);
  auto pair = std::make_unique<Pair>(options);
  unsetenv("FI_PULLMAN_PATIENCE");
  return pair;
}

inline std::vector<char> content(std::size_t size, int salt) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + salt);
  return bytes;
}

// Reads a byte that another thread may be writing, to see whether a message is arriving.
inline __attribute__((noinline, no_sanitize("thread"))) char glimpse(const volatile char& byte) {
  return byte;
}

}  // namespace pullman::test
