// fi_read, fi_write and their variants.
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "ofi/call_forms.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/endpoint/tables.h"

namespace pullman::ofi {
namespace {

template <Way way>
ssize_t move_segments(fid_ep* plain, const iovec* segments, void**, std::size_t count, fi_addr_t at,
                      std::uint64_t offset, std::uint64_t key, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  return handle.call(MemoryCall{.writes = way == Way::kWrite,
                                .segments = segments,
                                .count = count,
                                .at = at,
                                .offset = offset,
                                .key = key,
                                .context = context,
                                .flags = handle.send_flags});
}

template <Way way, typename Bytes>
ssize_t move(fid_ep* plain, Bytes* bytes, std::size_t length, void*, fi_addr_t at,
             std::uint64_t offset, std::uint64_t key, void* context) {
  const iovec segment{const_cast<void*>(static_cast<const void*>(bytes)), length};
  return move_segments<way>(plain, &segment, nullptr, 1, at, offset, key, context);
}

template <Way way>
ssize_t move_message(fid_ep* plain, const fi_msg_rma* message, std::uint64_t flags) {
  if (!has_one_target(*message)) return -FI_EINVAL;
  return EndpointHandle::of(plain).call(memory_call(way, *message, flags));
}

ssize_t write_data(fid_ep* plain, const void* bytes, std::size_t length, void*, std::uint64_t data,
                   fi_addr_t at, std::uint64_t offset, std::uint64_t key, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  const iovec segment{const_cast<void*>(bytes), length};
  return handle.call(MemoryCall{.writes = true,
                                .segments = &segment,
                                .count = 1,
                                .at = at,
                                .offset = offset,
                                .key = key,
                                .data = data,
                                .context = context,
                                .flags = handle.send_flags | FI_REMOTE_CQ_DATA});
}

ssize_t inject_with(fid_ep* plain, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t at, std::uint64_t offset, std::uint64_t key, std::uint64_t flags) {
  const iovec segment{const_cast<void*>(bytes), length};
  return EndpointHandle::of(plain).call(MemoryCall{.writes = true,
                                                   .segments = &segment,
                                                   .count = 1,
                                                   .at = at,
                                                   .offset = offset,
                                                   .key = key,
                                                   .data = data,
                                                   .flags = flags,
                                                   .silent = true});
}

ssize_t inject(fid_ep* plain, const void* bytes, std::size_t length, fi_addr_t at,
               std::uint64_t offset, std::uint64_t key) {
  return inject_with(plain, bytes, length, 0, at, offset, key, FI_INJECT);
}

ssize_t inject_data(fid_ep* plain, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t at, std::uint64_t offset, std::uint64_t key) {
  return inject_with(plain, bytes, length, data, at, offset, key, FI_INJECT | FI_REMOTE_CQ_DATA);
}

}  // namespace

fi_ops_rma& memory_operations() {
  static fi_ops_rma table{.size = sizeof(fi_ops_rma),
                          .read = move<Way::kRead, void>,
                          .readv = move_segments<Way::kRead>,
                          .readmsg = move_message<Way::kRead>,
                          .write = move<Way::kWrite, const void>,
                          .writev = move_segments<Way::kWrite>,
                          .writemsg = move_message<Way::kWrite>,
                          .inject = inject,
                          .writedata = write_data,
                          .injectdata = inject_data};
  return table;
}

}  // namespace pullman::ofi
