// A poll set (fi_poll(3)): tells which of several queues and counters have news.
#pragma once

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <vector>

#include "ofi/waitable.h"

namespace pullman::ofi {

class Domain;

class PollSet : public fid_poll {
 public:
  static int open(fid_domain* domain, fi_poll_attr* attributes, fid_poll** out);
  ~PollSet();

  // Writes the contexts of at most `count` members with news; returns how many.
  int poll(void** contexts, int count);
  int add(struct fid& member);
  int remove(struct fid& member);

 private:
  explicit PollSet(Domain& domain);

  struct Member {
    struct fid* handle;
    Waitable* waitable;
  };

  Domain& domain_;
  std::vector<Member> members_;
};

}  // namespace pullman::ofi
