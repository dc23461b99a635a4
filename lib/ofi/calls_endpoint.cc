// The function tables of an endpoint, except those for messages, RMA and atomics.
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "ofi/endpoint/endpoint.h"
#include "ofi/endpoint/tables.h"
#include "ofi/fids.h"
#include "ofi/limits.h"
#include "ofi/refuse.h"

namespace pullman::ofi {
namespace {

Endpoint& endpoint_of(fid* plain) {
  return *EndpointHandle::of(plain).endpoint;
}

// FI_GETOPSFLAG and FI_SETOPSFLAG: the default flags of one direction.
int exchange_flags(EndpointHandle& handle, int command, std::uint64_t& flags) {
  const bool sends = (flags & FI_TRANSMIT) != 0;
  if (sends == ((flags & FI_RECV) != 0)) return -FI_EINVAL;
  std::uint64_t& own = sends ? handle.send_flags : handle.receive_flags;
  if (command == FI_GETOPSFLAG) {
    flags = own;
  } else {
    own = flags & ~(FI_TRANSMIT | FI_RECV);
  }
  return 0;
}

int control(fid* plain, int command, void* argument) {
  EndpointHandle& handle = EndpointHandle::of(plain);
  switch (command) {
    case FI_ENABLE:
      return handle.endpoint->enable(handle);
    case FI_ALIAS:
      return handle.endpoint->make_alias(handle, *static_cast<struct fi_alias*>(argument));
    case FI_GETOPSFLAG:
    case FI_SETOPSFLAG:
      return exchange_flags(handle, command, *static_cast<std::uint64_t*>(argument));
    default:
      return -FI_ENOSYS;
  }
}

int get_option(fid* plain, int level, int name, void* out, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return Endpoint::get_option(*EndpointHandle::of(plain).lane, name, out, length);
}

int set_option(fid* plain, int level, int name, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return endpoint_of(plain).set_option(*EndpointHandle::of(plain).lane, name, value, length);
}

}  // namespace

fi_ops& endpoint_object_operations() {
  static fi_ops table = table_of(
      {.close = [](fid* plain) { return endpoint_of(plain).close(EndpointHandle::of(plain)); },
       .bind =
           [](fid* plain, fid* other, std::uint64_t flags) {
             return endpoint_of(plain).bind(EndpointHandle::of(plain), *other, flags);
           },
       .control = control});
  return table;
}

fi_ops_ep& endpoint_operations() {
  static fi_ops_ep table{
      .size = sizeof(fi_ops_ep),
      .cancel =
          [](fid* plain, void* context) {
            return endpoint_of(plain).cancel(*EndpointHandle::of(plain).lane, context);
          },
      .getopt = get_option,
      .setopt = set_option,
      .tx_ctx = [](fid_ep* plain, int index, fi_tx_attr* attributes, fid_ep** out,
                   void* context) -> int {
        if (plain->fid.fclass != FI_CLASS_SEP) return -FI_EINVAL;
        return Endpoint::from(plain).open_transmit(index, attributes, out, context);
      },
      .rx_ctx = [](fid_ep* plain, int index, fi_rx_attr* attributes, fid_ep** out,
                   void* context) -> int {
        if (plain->fid.fclass != FI_CLASS_SEP) return -FI_EINVAL;
        return Endpoint::from(plain).open_receive(index, attributes, out, context);
      },
      .rx_size_left = [](fid_ep*) { return static_cast<ssize_t>(kQueueSize); },
      .tx_size_left = [](fid_ep*) { return static_cast<ssize_t>(kQueueSize); }};
  return table;
}

fi_ops_cm& name_operations() {
  static fi_ops_cm table = [] {
    using T = fi_ops_cm;
    T own = refused_table<T, &T::getpeer, &T::connect, &T::listen, &T::accept, &T::reject,
                          &T::shutdown, &T::join>();
    own.setname = [](fid* plain, void* address, std::size_t length) {
      return endpoint_of(plain).set_name(address, length);
    };
    own.getname = [](fid* plain, void* out, std::size_t* length) {
      return endpoint_of(plain).get_name(out, length);
    };
    return own;
  }();
  return table;
}

fi_ops_collective& collective_operations() {
  using T = fi_ops_collective;
  static T table = refused_table<T, &T::barrier, &T::broadcast, &T::alltoall, &T::allreduce,
                                 &T::allgather, &T::reduce_scatter, &T::reduce, &T::scatter,
                                 &T::gather, &T::msg, &T::barrier2>();
  return table;
}

void fill_tables(fid_ep& handle) {
  handle.ops = &endpoint_operations();
  handle.cm = &name_operations();
  handle.msg = &message_operations();
  handle.tagged = &tagged_operations();
  handle.rma = &memory_operations();
  handle.atomic = &atomic_operations();
  handle.collective = &collective_operations();
}

}  // namespace pullman::ofi
