// Converts libfabric's handles to our objects and back. Each object inherits the C structure that
// an application holds, whose first member is the `fid`.
#pragma once

#include <rdma/fabric.h>

#include "ofi/refuse.h"

namespace pullman::ofi {

// `Object` inherits `Handle`, which begins with a fid.
template <typename Object, typename Handle>
Object& object_of(fid* plain) {
  return static_cast<Object&>(*reinterpret_cast<Handle*>(plain));
}

// The operations that every object has. Those not given are refused.
struct ObjectOps {
  decltype(fi_ops::close) close = kRefuse<decltype(fi_ops::close)>;
  decltype(fi_ops::bind) bind = kRefuse<decltype(fi_ops::bind)>;
  decltype(fi_ops::control) control = kRefuse<decltype(fi_ops::control)>;
};

constexpr fi_ops table_of(const ObjectOps& own) {
  return {.size = sizeof(fi_ops),
          .close = own.close,
          .bind = own.bind,
          .control = own.control,
          .ops_open = kRefuse<decltype(fi_ops::ops_open)>,
          .tostr = kRefuse<decltype(fi_ops::tostr)>,
          .ops_set = kRefuse<decltype(fi_ops::ops_set)>};
}

}  // namespace pullman::ofi
