// fi_send, fi_recv and their variants, tagged and untagged.
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "ofi/call_forms.h"
#include "ofi/endpoint/endpoint.h"
#include "ofi/endpoint/tables.h"
#include "ofi/refuse.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {
namespace {

template <typename... Tags>
constexpr Space kSpace = sizeof...(Tags) == 0 ? Space::kMessages : Space::kTagged;

iovec segment_of(const void* bytes, std::size_t length) {
  return {const_cast<void*>(bytes), length};
}

// Posts receives to an endpoint or a context of one.
struct ToEndpoint {
  static ssize_t call(fid_ep* plain, const ReceiveCall& asked) {
    return EndpointHandle::of(plain).call(asked);
  }
  static std::uint64_t flags(fid_ep* plain) { return EndpointHandle::of(plain).receive_flags; }
};

// Posts receives to a shared receive context.
struct ToSharedContext {
  static ssize_t call(fid_ep* plain, const ReceiveCall& asked) {
    return SharedReceiveContext::from(plain).receive(asked);
  }
  static std::uint64_t flags(fid_ep* plain) { return SharedReceiveContext::from(plain).flags(); }
};

template <typename To, typename... Tags>
ssize_t receive_segments(fid_ep* plain, const iovec* segments, void**, std::size_t count,
                         fi_addr_t from, Tags... tags, void* context) {
  const Label label{tags...};
  return To::call(plain, ReceiveCall{.space = kSpace<Tags...>,
                                     .segments = segments,
                                     .count = count,
                                     .from = from,
                                     .tag = label.tag,
                                     .ignore = label.ignore,
                                     .context = context,
                                     .flags = To::flags(plain)});
}

template <typename To, typename... Tags>
ssize_t receive(fid_ep* plain, void* bytes, std::size_t length, void*, fi_addr_t from, Tags... tags,
                void* context) {
  const iovec segment = segment_of(bytes, length);
  return receive_segments<To, Tags...>(plain, &segment, nullptr, 1, from, tags..., context);
}

template <typename To, typename Message>
ssize_t receive_message(fid_ep* plain, const Message* message, std::uint64_t flags) {
  return To::call(plain, receive_call(*message, flags));
}

template <typename... Tags>
ssize_t send_segments(fid_ep* plain, const iovec* segments, void**, std::size_t count, fi_addr_t to,
                      Tags... tag, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  return handle.call(SendCall{.space = kSpace<Tags...>,
                              .segments = segments,
                              .count = count,
                              .to = to,
                              .tag = Label{tag...}.tag,
                              .context = context,
                              .flags = handle.send_flags});
}

template <typename... Tags>
ssize_t send(fid_ep* plain, const void* bytes, std::size_t length, void*, fi_addr_t to, Tags... tag,
             void* context) {
  const iovec segment = segment_of(bytes, length);
  return send_segments<Tags...>(plain, &segment, nullptr, 1, to, tag..., context);
}

template <typename Message>
ssize_t send_message(fid_ep* plain, const Message* message, std::uint64_t flags) {
  return EndpointHandle::of(plain).call(send_call(*message, flags));
}

template <typename... Tags>
ssize_t send_data(fid_ep* plain, const void* bytes, std::size_t length, void*, std::uint64_t data,
                  fi_addr_t to, Tags... tag, void* context) {
  const EndpointHandle& handle = EndpointHandle::of(plain);
  const iovec segment = segment_of(bytes, length);
  return handle.call(SendCall{.space = kSpace<Tags...>,
                              .segments = &segment,
                              .count = 1,
                              .to = to,
                              .tag = Label{tag...}.tag,
                              .data = data,
                              .context = context,
                              .flags = handle.send_flags | FI_REMOTE_CQ_DATA});
}

template <typename... Tags>
ssize_t inject(fid_ep* plain, const void* bytes, std::size_t length, fi_addr_t to, Tags... tag) {
  const iovec segment = segment_of(bytes, length);
  return EndpointHandle::of(plain).call(SendCall{.space = kSpace<Tags...>,
                                                 .segments = &segment,
                                                 .count = 1,
                                                 .to = to,
                                                 .tag = Label{tag...}.tag,
                                                 .flags = FI_INJECT,
                                                 .silent = true});
}

template <typename... Tags>
ssize_t inject_data(fid_ep* plain, const void* bytes, std::size_t length, std::uint64_t data,
                    fi_addr_t to, Tags... tag) {
  const iovec segment = segment_of(bytes, length);
  return EndpointHandle::of(plain).call(SendCall{.space = kSpace<Tags...>,
                                                 .segments = &segment,
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
                          .recv = receive<ToEndpoint>,
                          .recvv = receive_segments<ToEndpoint>,
                          .recvmsg = receive_message<ToEndpoint>,
                          .send = send<>,
                          .sendv = send_segments<>,
                          .sendmsg = send_message,
                          .inject = inject<>,
                          .senddata = send_data<>,
                          .injectdata = inject_data<>};
  return table;
}

fi_ops_tagged& tagged_operations() {
  static fi_ops_tagged table{.size = sizeof(fi_ops_tagged),
                             .recv = receive<ToEndpoint, Tag, Tag>,
                             .recvv = receive_segments<ToEndpoint, Tag, Tag>,
                             .recvmsg = receive_message<ToEndpoint>,
                             .send = send<Tag>,
                             .sendv = send_segments<Tag>,
                             .sendmsg = send_message,
                             .inject = inject<Tag>,
                             .senddata = send_data<Tag>,
                             .injectdata = inject_data<Tag>};
  return table;
}

fi_ops_msg& shared_receive_message_operations() {
  using T = fi_ops_msg;
  static T table = [] {
    T own = refused_table<T, &T::send, &T::sendv, &T::sendmsg, &T::inject, &T::senddata,
                          &T::injectdata>();
    own.recv = receive<ToSharedContext>;
    own.recvv = receive_segments<ToSharedContext>;
    own.recvmsg = receive_message<ToSharedContext>;
    return own;
  }();
  return table;
}

fi_ops_tagged& shared_receive_tagged_operations() {
  using T = fi_ops_tagged;
  static T table = [] {
    T own = refused_table<T, &T::send, &T::sendv, &T::sendmsg, &T::inject, &T::senddata,
                          &T::injectdata>();
    own.recv = receive<ToSharedContext, Tag, Tag>;
    own.recvv = receive_segments<ToSharedContext, Tag, Tag>;
    own.recvmsg = receive_message<ToSharedContext>;
    return own;
  }();
  return table;
}

}  // namespace pullman::ofi
