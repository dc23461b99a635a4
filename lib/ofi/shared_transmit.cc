#include "ofi/shared_transmit.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "ofi/capabilities.h"
#include "ofi/domain.h"
#include "ofi/endpoint/tables.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"

namespace pullman::ofi {

SharedTransmitContext::SharedTransmitContext(Domain& domain, void* context)
    : fid_stx{}, domain_(domain) {
  static fi_ops object = table_of({.close = close});
  fid = {.fclass = FI_CLASS_STX_CTX, .context = context, .ops = &object};
  ops = &refused_endpoint_operations();
  domain_.hold();
}

SharedTransmitContext::~SharedTransmitContext() {
  domain_.release();
}

int SharedTransmitContext::open(fid_domain* domain, fi_tx_attr* attributes, fid_stx** out,
                                void* context) {
  return guarded([&]() -> int {
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    if (attributes != nullptr) describe(*attributes);
    *out = new SharedTransmitContext(Domain::from(domain), context);
    return 0;
  });
}

int SharedTransmitContext::close(struct fid* plain) {
  auto& shared = object_of<SharedTransmitContext, fid_stx>(plain);
  {
    Locked locked(shared.domain_.lock());
    if (shared.holders_ != 0) return -FI_EBUSY;
  }
  delete &shared;
  return 0;
}

}  // namespace pullman::ofi
