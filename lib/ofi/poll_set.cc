#include "ofi/poll_set.h"

#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"

namespace pullman::ofi {
namespace {

PollSet& set_of(fid_poll* handle) {
  return static_cast<PollSet&>(*handle);
}

fi_ops_poll& set_operations() {
  static fi_ops_poll table{.size = sizeof(fi_ops_poll),
                           .poll = [](fid_poll* set, void** contexts,
                                      int count) { return set_of(set).poll(contexts, count); },
                           .poll_add = [](fid_poll* set, fid* member,
                                          std::uint64_t) { return set_of(set).add(*member); },
                           .poll_del = [](fid_poll* set, fid* member,
                                          std::uint64_t) { return set_of(set).remove(*member); }};
  return table;
}

}  // namespace

PollSet::PollSet(Domain& domain) : fid_poll{}, domain_(domain) {
  static fi_ops object = table_of({.close = [](struct fid* plain) -> int {
    delete &object_of<PollSet, fid_poll>(plain);
    return 0;
  }});
  fid = {.fclass = FI_CLASS_POLL, .context = nullptr, .ops = &object};
  ops = &set_operations();
  domain_.hold();
}

PollSet::~PollSet() {
  {
    Locked locked(domain_.lock());
    for (const Member& member : members_) member.waitable->release();
  }
  domain_.release();
}

int PollSet::open(fid_domain* domain, fi_poll_attr* attributes, fid_poll** out) {
  return guarded([&]() -> int {
    if (attributes != nullptr && attributes->flags != 0) return -FI_EINVAL;
    *out = new PollSet(Domain::from(domain));
    return 0;
  });
}

int PollSet::poll(void** contexts, int count) {
  FairLocked locked(domain_.lock());
  int found = 0;
  for (const Member& member : members_) {
    if (!member.waitable->has_news()) member.waitable->progress();
    if (member.waitable->has_news() && found < count) contexts[found++] = member.handle->context;
  }
  return found;
}

int PollSet::add(struct fid& member) {
  return guarded([&]() -> int {
    Waitable* waitable = nullptr;
    if (member.fclass == FI_CLASS_CQ) waitable = &object_of<CompletionQueue, fid_cq>(&member);
    if (member.fclass == FI_CLASS_CNTR) waitable = &object_of<Counter, fid_cntr>(&member);
    if (waitable == nullptr) return -FI_EINVAL;
    if (&waitable->lock() != &domain_.lock()) return -FI_EDOMAIN;
    Locked locked(domain_.lock());
    members_.push_back({&member, waitable});
    waitable->hold();
    return 0;
  });
}

int PollSet::remove(struct fid& member) {
  Locked locked(domain_.lock());
  const auto removed = std::erase_if(members_, [&](const Member& one) {
    if (one.handle != &member) return false;
    one.waitable->release();
    return true;
  });
  return removed != 0 ? 0 : -FI_EINVAL;
}

}  // namespace pullman::ofi
