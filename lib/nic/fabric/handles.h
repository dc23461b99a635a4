// Owners for libfabric's objects, so that everything that is opened is closed, in the right order,
// on every path.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <memory>
#include <string>

namespace pullman::nic::fabric {

template <typename T>
struct CloseFid {
  void operator()(T* object) const { fi_close(&object->fid); }
};
template <typename T>
using Handle = std::unique_ptr<T, CloseFid<T>>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using InfoPtr = std::unique_ptr<fi_info, FreeInfo>;

// Throws NicError "cannot WHAT on DEVICE: reason" unless `result` is 0.
void require_ok(int result, const char* what, const std::string& device);

}  // namespace pullman::nic::fabric
