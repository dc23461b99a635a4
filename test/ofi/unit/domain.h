// A domain with queues and counters but no endpoint, for components that report to them.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <catch2/catch.hpp>
#include <deque>
#include <optional>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/fabric.h"

namespace pullman::ofi::test {

class TestDomain {
 public:
  TestDomain() {
    fi_fabric_attr fabric{};
    fabric.api_version = FI_VERSION(1, 17);
    REQUIRE(open_fabric(&fabric, &fabric_, nullptr) == 0);
    fi_domain_attr attributes{};
    fi_info info{};
    info.addr_format = FI_SOCKADDR_IN;
    info.domain_attr = &attributes;
    REQUIRE(Domain::open(fabric_, &info, &domain_, nullptr) == 0);
  }
  ~TestDomain() {
    for (CompletionQueue* queue : queues_) fi_close(&queue->fid);
    for (Counter* counter : counters_) fi_close(&counter->fid);
    fi_close(&domain_->fid);
    fi_close(&fabric_->fid);
  }
  TestDomain(const TestDomain&) = delete;
  TestDomain& operator=(const TestDomain&) = delete;

  Domain& operator*() { return Domain::from(domain_); }
  Domain* operator->() { return &Domain::from(domain_); }

  CompletionQueue& queue() {
    fi_cq_attr attributes{};
    attributes.format = FI_CQ_FORMAT_TAGGED;
    fid_cq* opened = nullptr;
    REQUIRE(CompletionQueue::open(domain_, &attributes, &opened, nullptr) == 0);
    return *queues_.emplace_back(static_cast<CompletionQueue*>(opened));
  }
  Counter& counter() {
    fid_cntr* opened = nullptr;
    REQUIRE(Counter::open(domain_, nullptr, &opened, nullptr) == 0);
    return *counters_.emplace_back(&Counter::from(opened));
  }

 private:
  fid_fabric* fabric_ = nullptr;
  fid_domain* domain_ = nullptr;
  std::deque<CompletionQueue*> queues_;
  std::deque<Counter*> counters_;
};

// Returns the next completion, if there is one.
inline std::optional<fi_cq_tagged_entry> read(CompletionQueue& queue) {
  fi_cq_tagged_entry entry{};
  if (queue.read(&entry, 1, nullptr) != 1) return std::nullopt;
  return entry;
}

inline std::optional<fi_cq_err_entry> read_error(CompletionQueue& queue) {
  fi_cq_err_entry entry{};
  if (queue.read_error(entry) != 1) return std::nullopt;
  return entry;
}

}  // namespace pullman::ofi::test
