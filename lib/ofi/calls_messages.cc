// fi_send, fi_recv and their variants, with tags and without.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "ofi/call_forms.h"
#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"

namespace pullman::ofi {
namespace {

template <typename... Tags>
constexpr Space kSpace = sizeof...(Tags) == 0 ? Space::kMessages : Space::kTagged;

iovec piece_of(const void* bytes, std::size_t length) {
  return {const_cast<void*>(bytes), length};
}

template <typename... Tags>
ssize_t receive_pieces(fid_ep* plain, const iovec* pieces, void**, std::size_t count,
                       fi_addr_t from, Tags... tags, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  const Label label{tags...};
  return handle.endpoint->call(ReceiveCall{.space = kSpace<Tags...>,
                                           .pieces = pieces,
                                           .count = count,
                                           .from = from,
                                           .tag = label.tag,
                                           .ignore = label.ignore,
                                           .context = context,
                                           .flags = handle.receive_flags});
}

template <typename... Tags>
ssize_t receive(fid_ep* plain, void* bytes, std::size_t length, void*, fi_addr_t from, Tags... tags,
                void* context) {
  const iovec piece = piece_of(bytes, length);
  return receive_pieces<Tags...>(plain, &piece, nullptr, 1, from, tags..., context);
}

template <typename Message>
ssize_t receive_message(fid_ep* plain, const Message* message, std::uint64_t flags) {
  return Endpoint::from(plain).call(receive_call(*message, flags));
}

template <typename... Tags>
ssize_t send_pieces(fid_ep* plain, const iovec* pieces, void**, std::size_t count, fi_addr_t to,
                    Tags... tag, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  return handle.endpoint->call(SendCall{.space = kSpace<Tags...>,
                                        .pieces = pieces,
                                        .count = count,
                                        .to = to,
                                        .tag = Label{tag...}.tag,
                                        .context = context,
                                        .flags = handle.send_flags});
}

template <typename... Tags>
ssize_t send(fid_ep* plain, const void* bytes, std::size_t length, void*, fi_addr_t to, Tags... tag,
             void* context) {
  const iovec piece = piece_of(bytes, length);
  return send_pieces<Tags...>(plain, &piece, nullptr, 1, to, tag..., context);
}

template <typename Message>
ssize_t send_message(fid_ep* plain, const Message* message, std::uint64_t flags) {
  return Endpoint::from(plain).call(send_call(*message, flags));
}

template <typename... Tags>
ssize_t send_data(fid_ep* plain, const void* bytes, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, Tags... tag, void* context) {
  const EndpointHandle& handle = Endpoint::handle_of(plain);
  const iovec piece = piece_of(bytes, length);
  return handle.endpoint->call(SendCall{.space = kSpace<Tags...>,
                                        .pieces = &piece,
                                        .count = 1,
                                        .to = to,
                                        .tag = Label{tag...}.tag,
                                        .data = data,
                                        .context = context,
                                        .flags = handle.send_flags | FI_REMOTE_CQ_DATA});
}

template <typename... Tags>
ssize_t inject(fid_ep* plain, const void* bytes, std::size_t length, fi_addr_t to, Tags... tag) {
  const iovec piece = piece_of(bytes, length);
  return Endpoint::from(plain).send({.space = kSpace<Tags...>,
                                     .pieces = &piece,
                                     .count = 1,
                                     .to = to,
                                     .tag = Label{tag...}.tag,
                                     .flags = FI_INJECT,
                                     .silent = true});
}

template <typename... Tags>
ssize_t inject_data(fid_ep* plain, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t to, Tags... tag) {
  const iovec piece = piece_of(bytes, length);
  return Endpoint::from(plain).send({.space = kSpace<Tags...>,
                                     .pieces = &piece,
                                     .count = 1,
                                     .to = to,
                                     .tag = Label{tag...}.tag,
                                     .data = data,
                                     .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                                     .silent = true});
}

}  // namespace

fi_ops_msg& message_operations() {
  static fi_ops_msg table{.size = sizeof(fi_ops_msg),
                          .recv = receive<>,
                          .recvv = receive_pieces<>,
                          .recvmsg = receive_message,
                          .send = send<>,
                          .sendv = send_pieces<>,
                          .sendmsg = send_message,
                          .inject = inject<>,
                          .senddata = send_data<>,
                          .injectdata = inject_data<>};
  return table;
}

fi_ops_tagged& tagged_operations() {
  static fi_ops_tagged table{.size = sizeof(fi_ops_tagged),
                             .recv = receive<Tag, Tag>,
                             .recvv = receive_pieces<Tag, Tag>,
                             .recvmsg = receive_message,
                             .send = send<Tag>,
                             .sendv = send_pieces<Tag>,
                             .sendmsg = send_message,
                             .inject = inject<Tag>,
                             .senddata = send_data<Tag>,
                             .injectdata = inject_data<Tag>};
  return table;
}

}  // namespace pullman::ofi
