// A shared transmit context (fi_stx_context()). Endpoints are bound to it, but operations are
// posted to the endpoints. They share the domain's lock; nothing else has to be shared.
#pragma once

#include <rdma/fi_endpoint.h>

#include <cstddef>

namespace pullman::ofi {

class Domain;

class SharedTransmitContext : public fid_stx {
 public:
  static int open(fid_domain* domain, fi_tx_attr* attributes, fid_stx** out, void* context);
  ~SharedTransmitContext();

  Domain& domain() const { return domain_; }
  // Counts the endpoints that keep it from being closed. Under the lock.
  void hold() { ++holders_; }
  void release() { --holders_; }

 private:
  SharedTransmitContext(Domain& domain, void* context);
  static int close(struct fid* plain);

  Domain& domain_;
  std::size_t holders_ = 0;
};

}  // namespace pullman::ofi
