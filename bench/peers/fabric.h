// libfabric's reliable datagram endpoints (FI_EP_RDM) with tagged messages, over any provider.
//
// Manual progress by one thread, one completion queue for both directions, receives posted before
// anything is sent, fi_tinject() for what the provider takes that way.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <string>
#include <vector>

#include "carrier.h"

namespace peers {

struct CloseFabric {
  template <class Object>
  void operator()(Object* object) const {
    (void)fi_close(&object->fid);
  }
};
struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
template <class Object>
using Owned = std::unique_ptr<Object, CloseFabric>;
using Info = std::unique_ptr<fi_info, FreeInfo>;

class Fabric final : public Carrier {
 public:
  Fabric(const Meeting& meeting, const std::string& provider);

  bool send(std::size_t bytes) override;
  bool has_room(std::size_t window) const override {
    return under_way_ < window && under_way_ < free_.size();
  }
  bool idle() const override { return under_way_ == 0; }
  void progress() override;
  std::uint64_t received() const override { return received_; }

 private:
  void open(std::size_t completions);
  void meet(const Meeting& meeting);
  void post(fi_context2* slot);
  [[noreturn]] void close_abortively() const;

  Info info_;
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> queue_;
  Owned<fid_av> addresses_;
  Owned<fid_ep> endpoint_;
  fi_addr_t peer_ = FI_ADDR_UNSPEC;
  std::vector<std::byte> out_;
  std::vector<std::byte> in_;           // all receives share it: nobody reads it
  std::vector<fi_context2> receives_;   // one for each receive posted
  std::vector<fi_context2*> unposted_;  // receives the provider had no room for
  std::vector<fi_context2> sends_;      // one for each send that may be under way
  std::vector<fi_context2*> free_;      // of sends_; the first under_way_ are in use
  std::size_t under_way_ = 0;
  std::uint64_t received_ = 0;
  std::array<fi_cq_entry, 64> done_{};
};

}  // namespace peers
