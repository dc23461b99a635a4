#include "ofi/domain.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "ofi/address_vector.h"
#include "ofi/atomics.h"
#include "ofi/authorization_key.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/deferred_work.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/event_queue.h"
#include "ofi/fabric.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"
#include "ofi/poll_set.h"
#include "ofi/settings.h"
#include "ofi/shared_receive.h"
#include "ofi/shared_transmit.h"
#include "ofi/versions.h"

namespace pullman::ofi {
namespace {

// Automatic progress differs from manual progress only in how soon the thread takes over.
ProgressThread::Patience patience_for(const fi_domain_attr& attributes) {
  return attributes.data_progress == FI_PROGRESS_AUTO ? kAutomaticPatience : read_patience();
}

// The only events of a domain are those of its address vectors, which report to the queue bound
// here unless they have one of their own.
int bind_domain(fid*, fid* other, std::uint64_t) {
  return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

int control_domain(fid* plain, int command, void* argument) {
  return guarded([&]() -> int {
    return control_work(object_of<Domain, fid_domain>(plain), command, argument);
  });
}

fi_ops_domain& domain_operations() {
  static fi_ops_domain table{.size = sizeof(fi_ops_domain),
                             .av_open = AddressVector::open,
                             .cq_open = CompletionQueue::open,
                             .endpoint = Endpoint::open,
                             .scalable_ep = Endpoint::open_scalable,
                             .cntr_open = Counter::open,
                             .poll_open = PollSet::open,
                             .stx_ctx = SharedTransmitContext::open,
                             .srx_ctx = SharedReceiveContext::open,
                             .query_atomic = query_atomic,
                             .query_collective = kRefuse<decltype(fi_ops_domain::query_collective)>,
                             .endpoint2 = [](fid_domain* domain, fi_info* info, fid_ep** out,
                                             std::uint64_t flags, void* context) -> int {
                               return flags == 0 ? Endpoint::open(domain, info, out, context)
                                                 : -FI_EBADFLAGS;
                             }};
  return table;
}

}  // namespace

Domain::Domain(Fabric& fabric, const fi_info& info, void* context)
    : fid_domain{},
      fabric_(fabric),
      api_version_(fabric.api_version),
      address_format_(info.addr_format),
      job_key_(job_key_of(info.domain_attr->auth_key, info.domain_attr->auth_key_size)),
      regions_((info.domain_attr->mr_mode & kBasicRegistration) != 0),
      thread_(lock_, patience_for(*info.domain_attr)) {
  static fi_ops object = table_of({.close = [](struct fid* plain) -> int {
                                     auto& domain = object_of<Domain, fid_domain>(plain);
                                     if (domain.held()) return -FI_EBUSY;
                                     delete &domain;
                                     return 0;
                                   },
                                   .bind = bind_domain,
                                   .control = control_domain});
  fid = {.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &object};
  ops = &domain_operations();
  mr = &registration_operations();
  fabric_.hold();
}

Domain::~Domain() {
  fabric_.release();
}

int Domain::open(fid_fabric* fabric, fi_info* info, fid_domain** out, void* context) {
  return guarded([&]() -> int {
    if (info == nullptr || info->domain_attr == nullptr) return -FI_EINVAL;
    *out = new Domain(Fabric::from(fabric), *info, context);
    return 0;
  });
}

}  // namespace pullman::ofi
