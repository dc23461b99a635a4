// fi_tsend, fi_trecv and their variants.
#include <rdma/fi_tagged.h>

#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"

namespace pullman::ofi {
namespace {

ssize_t receive_pieces(fid_ep* plain, const iovec* pieces, void**, std::size_t count,
                       fi_addr_t from, std::uint64_t tag, std::uint64_t ignore, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  return handle.endpoint->receive({.space = Space::kTagged,
                                   .pieces = pieces,
                                   .count = count,
                                   .from = from,
                                   .tag = tag,
                                   .ignore = ignore,
                                   .context = context,
                                   .flags = handle.receive_flags});
}

ssize_t receive(fid_ep* plain, void* bytes, std::size_t length, void*, fi_addr_t from,
                std::uint64_t tag, std::uint64_t ignore, void* context) {
  const iovec piece{bytes, length};
  return receive_pieces(plain, &piece, nullptr, 1, from, tag, ignore, context);
}

ssize_t receive_message(fid_ep* plain, const fi_msg_tagged* message, std::uint64_t flags) {
  return Endpoint::from(plain).receive({.space = Space::kTagged,
                                        .pieces = message->msg_iov,
                                        .count = message->iov_count,
                                        .from = message->addr,
                                        .tag = message->tag,
                                        .ignore = message->ignore,
                                        .context = message->context,
                                        .flags = flags});
}

ssize_t send_pieces(fid_ep* plain, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                    std::uint64_t tag, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  return handle.endpoint->send({.space = Space::kTagged,
                                .pieces = pieces,
                                .count = count,
                                .to = to,
                                .tag = tag,
                                .context = context,
                                .flags = handle.send_flags});
}

ssize_t send(fid_ep* plain, const void* bytes, std::size_t length, void*, fi_addr_t to,
             std::uint64_t tag, void* context) {
  const iovec piece{const_cast<void*>(bytes), length};
  return send_pieces(plain, &piece, nullptr, 1, to, tag, context);
}

ssize_t send_message(fid_ep* plain, const fi_msg_tagged* message, std::uint64_t flags) {
  return Endpoint::from(plain).send({.space = Space::kTagged,
                                     .pieces = message->msg_iov,
                                     .count = message->iov_count,
                                     .to = message->addr,
                                     .tag = message->tag,
                                     .data = message->data,
                                     .context = message->context,
                                     .flags = flags});
}

ssize_t inject(fid_ep* plain, const void* bytes, std::size_t length, fi_addr_t to,
               std::uint64_t tag) {
  const iovec piece{const_cast<void*>(bytes), length};
  return Endpoint::from(plain).send({.space = Space::kTagged,
                                     .pieces = &piece,
                                     .count = 1,
                                     .to = to,
                                     .tag = tag,
                                     .flags = FI_INJECT,
                                     .silent = true});
}

ssize_t send_data(fid_ep* plain, const void* bytes, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, std::uint64_t tag, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  const iovec piece{const_cast<void*>(bytes), length};
  return handle.endpoint->send({.space = Space::kTagged,
                                .pieces = &piece,
                                .count = 1,
                                .to = to,
                                .tag = tag,
                                .data = data,
                                .context = context,
                                .flags = handle.send_flags | FI_REMOTE_CQ_DATA});
}

ssize_t inject_data(fid_ep* plain, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t to, std::uint64_t tag) {
  const iovec piece{const_cast<void*>(bytes), length};
  return Endpoint::from(plain).send({.space = Space::kTagged,
                                     .pieces = &piece,
                                     .count = 1,
                                     .to = to,
                                     .tag = tag,
                                     .data = data,
                                     .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                                     .silent = true});
}

}  // namespace

fi_ops_tagged& tagged_operations() {
  static fi_ops_tagged table{.size = sizeof(fi_ops_tagged),
                             .recv = receive,
                             .recvv = receive_pieces,
                             .recvmsg = receive_message,
                             .send = send,
                             .sendv = send_pieces,
                             .sendmsg = send_message,
                             .inject = inject,
                             .senddata = send_data,
                             .injectdata = inject_data};
  return table;
}

}  // namespace pullman::ofi
