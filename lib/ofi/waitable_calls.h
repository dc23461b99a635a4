// The operations of queues and counters as libfabric's objects, the same for all Waitables.
#pragma once

#include <cstddef>

#include "ofi/errors.h"
#include "ofi/fids.h"
#include "ofi/waitable.h"

namespace pullman::ofi {

// `Object` inherits `Handle` and Waitable, and has a close().
template <typename Object, typename Handle>
fi_ops& waitable_operations() {
  static fi_ops table =
      table_of({.close = [](fid* plain) -> int { return object_of<Object, Handle>(plain).close(); },
                .control = [](fid* plain, int command, void* argument) -> int {
                  return object_of<Object, Handle>(plain).Waitable::control(command, argument);
                }});
  return table;
}

// fi_cq_strerror and fi_eq_strerror.
template <typename Handle>
const char* write_sentence(Handle*, int provider_number, const void*, char* out, std::size_t room) {
  return write_sentence_of(provider_number, out, room);
}

}  // namespace pullman::ofi
