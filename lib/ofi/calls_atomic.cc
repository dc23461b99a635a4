// fi_atomic, fi_fetch_atomic, fi_compare_atomic and their variants.
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "ofi/call_forms.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/endpoint/tables.h"

namespace pullman::ofi {
namespace {

fi_ioc segment_of(const void* elements, std::size_t count) {
  return {const_cast<void*>(elements), count};
}

ssize_t write_segments(fid_ep* plain, const fi_ioc* segments, void**, std::size_t count,
                       fi_addr_t at, std::uint64_t offset, std::uint64_t key, fi_datatype type,
                       fi_op op, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  return handle.call(AtomicCall{.kind = AtomicKind::kWrite,
                                .type = type,
                                .op = op,
                                .operands = {segments, count},
                                .at = at,
                                .offset = offset,
                                .key = key,
                                .context = context,
                                .flags = handle.send_flags});
}

ssize_t write(fid_ep* plain, const void* elements, std::size_t count, void*, fi_addr_t at,
              std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const fi_ioc segment = segment_of(elements, count);
  return write_segments(plain, &segment, nullptr, 1, at, offset, key, type, op, context);
}

ssize_t inject(fid_ep* plain, const void* elements, std::size_t count, fi_addr_t at,
               std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op op) {
  const fi_ioc segment = segment_of(elements, count);
  return EndpointHandle::of(plain).call(AtomicCall{.kind = AtomicKind::kWrite,
                                                   .type = type,
                                                   .op = op,
                                                   .operands = {&segment, 1},
                                                   .at = at,
                                                   .offset = offset,
                                                   .key = key,
                                                   .flags = FI_INJECT,
                                                   .silent = true});
}

ssize_t fetch_segments(fid_ep* plain, const fi_ioc* segments, void**, std::size_t count,
                       fi_ioc* results, void**, std::size_t result_count, fi_addr_t at,
                       std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op op,
                       void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  return handle.call(AtomicCall{.kind = AtomicKind::kFetch,
                                .type = type,
                                .op = op,
                                .operands = {segments, count},
                                .results = {results, result_count},
                                .at = at,
                                .offset = offset,
                                .key = key,
                                .context = context,
                                .flags = handle.send_flags});
}

ssize_t fetch(fid_ep* plain, const void* elements, std::size_t count, void*, void* results, void*,
              fi_addr_t at, std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op op,
              void* context) {
  const fi_ioc segment = segment_of(elements, count);
  fi_ioc result = segment_of(results, count);
  return fetch_segments(plain, &segment, nullptr, 1, &result, nullptr, 1, at, offset, key, type, op,
                        context);
}

ssize_t compare_segments(fid_ep* plain, const fi_ioc* segments, void**, std::size_t count,
                         const fi_ioc* compares, void**, std::size_t compare_count, fi_ioc* results,
                         void**, std::size_t result_count, fi_addr_t at, std::uint64_t offset,
                         std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  return handle.call(AtomicCall{.kind = AtomicKind::kCompare,
                                .type = type,
                                .op = op,
                                .operands = {segments, count},
                                .compares = {compares, compare_count},
                                .results = {results, result_count},
                                .at = at,
                                .offset = offset,
                                .key = key,
                                .context = context,
                                .flags = handle.send_flags});
}

ssize_t compare(fid_ep* plain, const void* elements, std::size_t count, void*, const void* compares,
                void*, void* results, void*, fi_addr_t at, std::uint64_t offset, std::uint64_t key,
                fi_datatype type, fi_op op, void* context) {
  const fi_ioc segment = segment_of(elements, count);
  const fi_ioc compared = segment_of(compares, count);
  fi_ioc result = segment_of(results, count);
  return compare_segments(plain, &segment, nullptr, 1, &compared, nullptr, 1, &result, nullptr, 1,
                          at, offset, key, type, op, context);
}

// The common part of the three kinds of message calls.
ssize_t operate(fid_ep* plain, const fi_msg_atomic& message, std::uint64_t flags,
                const AtomicCall& call) {
  if (!has_one_target(message)) return -FI_EINVAL;
  return EndpointHandle::of(plain).call(atomic_call(message, flags, call));
}

ssize_t write_message(fid_ep* plain, const fi_msg_atomic* message, std::uint64_t flags) {
  return operate(plain, *message, flags, {.kind = AtomicKind::kWrite});
}

ssize_t fetch_message(fid_ep* plain, const fi_msg_atomic* message, fi_ioc* results, void**,
                      std::size_t result_count, std::uint64_t flags) {
  return operate(plain, *message, flags,
                 {.kind = AtomicKind::kFetch, .results = {results, result_count}});
}

ssize_t compare_message(fid_ep* plain, const fi_msg_atomic* message, const fi_ioc* compares, void**,
                        std::size_t compare_count, fi_ioc* results, void**,
                        std::size_t result_count, std::uint64_t flags) {
  return operate(plain, *message, flags,
                 {.kind = AtomicKind::kCompare,
                  .compares = {compares, compare_count},
                  .results = {results, result_count}});
}

template <AtomicKind kind>
int is_valid(fid_ep*, fi_datatype type, fi_op op, std::size_t* count) {
  return ask_atomic(kind, type, op, count);
}

}  // namespace

fi_ops_atomic& atomic_operations() {
  static fi_ops_atomic table{.size = sizeof(fi_ops_atomic),
                             .write = write,
                             .writev = write_segments,
                             .writemsg = write_message,
                             .inject = inject,
                             .readwrite = fetch,
                             .readwritev = fetch_segments,
                             .readwritemsg = fetch_message,
                             .compwrite = compare,
                             .compwritev = compare_segments,
                             .compwritemsg = compare_message,
                             .writevalid = is_valid<AtomicKind::kWrite>,
                             .readwritevalid = is_valid<AtomicKind::kFetch>,
                             .compwritevalid = is_valid<AtomicKind::kCompare>};
  return table;
}

}  // namespace pullman::ofi
