#include "ofi/fabric.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/event_queue.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"
#include "ofi/provider.h"
#include "ofi/wait_set.h"

namespace pullman::ofi {
namespace {

Waitable* waitable_of(fid* plain) {
  switch (plain->fclass) {
    case FI_CLASS_CQ:
      return &object_of<CompletionQueue, fid_cq>(plain);
    case FI_CLASS_CNTR:
      return &object_of<Counter, fid_cntr>(plain);
    case FI_CLASS_EQ:
      return &object_of<EventQueue, fid_eq>(plain);
    default:
      return nullptr;
  }
}

// Whether an application may sleep on the descriptors of all these objects.
int try_wait(fid_fabric*, fid** fids, int count) {
  int result = 0;
  for (int i = 0; i < count; ++i) {
    if (fids[i]->fclass == FI_CLASS_WAIT) {
      if (!object_of<WaitSet, fid_wait>(fids[i]).prepare_wait()) result = -FI_EAGAIN;
      continue;
    }
    Waitable* one = waitable_of(fids[i]);
    if (one == nullptr || !one->can_wait()) return -FI_EINVAL;
    Locked locked(one->lock());
    if (!one->prepare_wait()) result = -FI_EAGAIN;
  }
  return result;
}

fi_ops_fabric& fabric_operations() {
  static fi_ops_fabric table{.size = sizeof(fi_ops_fabric),
                             .domain = Domain::open,
                             .passive_ep = kRefuse<decltype(fi_ops_fabric::passive_ep)>,
                             .eq_open = EventQueue::open,
                             .wait_open = WaitSet::open,
                             .trywait = try_wait,
                             .domain2 = [](fid_fabric* fabric, fi_info* info, fid_domain** out,
                                           std::uint64_t flags, void* context) -> int {
                               return flags == 0 ? Domain::open(fabric, info, out, context)
                                                 : -FI_EBADFLAGS;
                             }};
  return table;
}

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attributes, void* context) : fid_fabric{} {
  static fi_ops object = table_of({.close = [](struct fid* plain) -> int {
    auto& fabric = object_of<Fabric, fid_fabric>(plain);
    if (fabric.held()) return -FI_EBUSY;
    delete &fabric;
    return 0;
  }});
  fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &object};
  ops = &fabric_operations();
  api_version = attributes.api_version;
}

int open_fabric(fi_fabric_attr* attributes, fid_fabric** out, void* context) {
  return guarded([&]() -> int {
    if (attributes == nullptr) return -FI_EINVAL;
    if (attributes->name != nullptr && std::strcmp(attributes->name, kName) != 0) {
      return -FI_ENODATA;
    }
    *out = new Fabric(*attributes, context);
    return 0;
  });
}

}  // namespace pullman::ofi
