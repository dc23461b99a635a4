// A completion queue (fi_cq(3)). It grows instead of overflowing. A read makes progress if the
// queue is empty, but less so right after a read that emptied it. Does not know operations.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "ofi/completion.h"
#include "ofi/idle_policy.h"
#include "ofi/ring.h"
#include "ofi/settings.h"
#include "ofi/waitable.h"

namespace pullman::ofi {

class Domain;

class CompletionQueue : public fid_cq, public Waitable {
 public:
  static int open(fid_domain* domain, fi_cq_attr* attributes, fid_cq** out, void* context);
  ~CompletionQueue() override;

  // Adds an entry, which the caller fills before it releases the lock. Under the lock.
  Completion& push() {
    wake();
    return entries_.push() = {};
  }

  // A signal does not count: it concerns only threads in fi_cq_sread().
  bool has_news() const override { return !entries_.empty(); }

  // Works as fi_cq_readfrom; `sources` may be null.
  ssize_t read(void* out, std::size_t count, fi_addr_t* sources);
  ssize_t read_error(fi_cq_err_entry& out);
  ssize_t read_waiting(void* out, std::size_t count, fi_addr_t* sources, int timeout_ms);
  int signal();
  int close();
  Domain& domain() const { return domain_; }

 private:
  CompletionQueue(Domain& domain, const fi_cq_attr& attributes, void* context);
  // Under the lock; makes no progress.
  ssize_t take(void* out, std::size_t count, fi_addr_t* sources);
  void yield();

  Domain& domain_;
  const fi_cq_format format_;
  Ring<Completion> entries_;
  IdlePolicy idle_policy_{read_gives_way()};
  std::uint64_t signals_ = 0;  // calls of fi_cq_signal: each makes all waiting threads return
  unsigned waiting_ = 0;       // threads
  bool signalled_ = false;     // while no thread waited: the first to wait returns
  bool emptied_ = false;       // the last read took all, and had room for more
};

}  // namespace pullman::ofi
