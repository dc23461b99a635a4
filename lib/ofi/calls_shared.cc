// The function tables of shared contexts, except those for receives.
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "ofi/endpoint/tables.h"
#include "ofi/fids.h"
#include "ofi/limits.h"
#include "ofi/options.h"
#include "ofi/refuse.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {
namespace {

SharedReceiveContext& context_of(fid* plain) {
  return object_of<SharedReceiveContext, fid_ep>(plain);
}

// Gets or sets the default flags. A shared context is enabled from the beginning.
int control(fid* plain, int command, void* argument) {
  SharedReceiveContext& shared = context_of(plain);
  if (command == FI_ENABLE) return 0;
  if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
  auto& flags = *static_cast<std::uint64_t*>(argument);
  if ((flags & (FI_TRANSMIT | FI_RECV)) != FI_RECV) return -FI_EINVAL;
  if (command == FI_GETOPSFLAG) {
    flags = shared.flags();
  } else {
    shared.set_flags(flags & ~FI_RECV);
  }
  return 0;
}

int get_option(fid* plain, int level, int name, void* out, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return read_option(name, context_of(plain).min_room(), out, length);
}

int set_option(fid* plain, int level, int name, const void* value, std::size_t length) {
  std::size_t bytes = 0;
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (!take_size(value, length, bytes)) return -FI_EINVAL;
  context_of(plain).set_min_room(bytes);
  return 0;
}

fi_ops_ep& shared_receive_endpoint_operations() {
  static fi_ops_ep table{.size = sizeof(fi_ops_ep),
                         .cancel = [](fid* plain, void* context) -> ssize_t {
                           return context_of(plain).cancel(context);
                         },
                         .getopt = get_option,
                         .setopt = set_option,
                         .tx_ctx = kRefuse<decltype(fi_ops_ep::tx_ctx)>,
                         .rx_ctx = kRefuse<decltype(fi_ops_ep::rx_ctx)>,
                         .rx_size_left = [](fid_ep*) { return static_cast<ssize_t>(kQueueSize); },
                         .tx_size_left = kRefuse<decltype(fi_ops_ep::tx_size_left)>};
  return table;
}

fi_ops_cm& refused_name_operations() {
  using T = fi_ops_cm;
  static T table = refused_table<T, &T::setname, &T::getname, &T::getpeer, &T::connect, &T::listen,
                                 &T::accept, &T::reject, &T::shutdown, &T::join>();
  return table;
}

fi_ops_rma& refused_memory_operations() {
  using T = fi_ops_rma;
  static T table = refused_table<T, &T::read, &T::readv, &T::readmsg, &T::write, &T::writev,
                                 &T::writemsg, &T::inject, &T::writedata, &T::injectdata>();
  return table;
}

fi_ops_atomic& refused_atomic_operations() {
  using T = fi_ops_atomic;
  static T table =
      refused_table<T, &T::write, &T::writev, &T::writemsg, &T::inject, &T::readwrite,
                    &T::readwritev, &T::readwritemsg, &T::compwrite, &T::compwritev,
                    &T::compwritemsg, &T::writevalid, &T::readwritevalid, &T::compwritevalid>();
  return table;
}

}  // namespace

fi_ops& shared_receive_object_operations() {
  static fi_ops table =
      table_of({.close = [](fid* plain) { return context_of(plain).close(); }, .control = control});
  return table;
}

void fill_shared_receive_tables(fid_ep& handle) {
  handle.ops = &shared_receive_endpoint_operations();
  handle.cm = &refused_name_operations();
  handle.msg = &shared_receive_message_operations();
  handle.tagged = &shared_receive_tagged_operations();
  handle.rma = &refused_memory_operations();
  handle.atomic = &refused_atomic_operations();
  handle.collective = &collective_operations();
}

fi_ops_ep& refused_endpoint_operations() {
  using T = fi_ops_ep;
  static T table = refused_table<T, &T::cancel, &T::getopt, &T::setopt, &T::tx_ctx, &T::rx_ctx,
                                 &T::rx_size_left, &T::tx_size_left>();
  return table;
}

}  // namespace pullman::ofi
