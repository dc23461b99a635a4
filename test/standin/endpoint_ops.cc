#include "standin/endpoint_ops.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "standin/domain.h"
#include "standin/endpoint.h"

namespace pullman::standin {
namespace {

Endpoint* self(fid* object) {
  return static_cast<Endpoint*>(reinterpret_cast<fid_ep*>(object));
}

int close_endpoint(fid* object) {
  const Locked locked;
  delete self(object);
  return 0;
}

int bind_endpoint(fid* object, fid* other, std::uint64_t flags) {
  const Locked locked;
  return self(object)->bind(other, flags);
}

int control_endpoint(fid* object, int command, void*) {
  const Locked locked;
  return command == FI_ENABLE ? self(object)->enable() : -FI_ENOSYS;
}

int get_name(fid_t object, void* out, std::size_t* length) {
  const Locked locked;
  const sockaddr_in name = self(object)->name();
  const std::size_t room = *length;
  *length = sizeof name;
  std::memcpy(out, &name, std::min(room, sizeof name));
  return room < sizeof name ? -FI_ETOOSMALL : 0;
}

ssize_t receive(fid_ep* object, void* bytes, std::size_t length, void* descriptor, fi_addr_t,
                void* context) {
  const Locked locked;
  const Work work{static_cast<std::byte*>(bytes), length, descriptor, 0, context};
  return static_cast<Endpoint*>(object)->post_receive(work, false);
}

ssize_t receive_message(fid_ep* object, const fi_msg* message, std::uint64_t flags) {
  const Locked locked;
  if (message->iov_count != 1) return -FI_EINVAL;
  const Work work{static_cast<std::byte*>(message->msg_iov->iov_base), message->msg_iov->iov_len,
                  message->desc != nullptr ? message->desc[0] : nullptr, 0, message->context};
  return static_cast<Endpoint*>(object)->post_receive(work, (flags & FI_MORE) != 0);
}

ssize_t send(fid_ep* object, const void* bytes, std::size_t length, void* descriptor, fi_addr_t to,
             void* context) {
  const Locked locked;
  auto* writable = static_cast<std::byte*>(const_cast<void*>(bytes));  // the prefix will be written
  return static_cast<Endpoint*>(object)->post_send({writable, length, descriptor, to, context});
}

ssize_t inject(fid_ep* object, const void* bytes, std::size_t length, fi_addr_t to) {
  const Locked locked;
  return static_cast<Endpoint*>(object)->inject(bytes, length, to);
}

fi_ops endpoint_fid_ops{sizeof(fi_ops),     close_endpoint,     bind_endpoint,     control_endpoint,
                        refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
// Like usnic, it does not cancel.
fi_ops_ep option_ops{sizeof(fi_ops_ep),       refuse<-FI_ENOSYS>, refuse<-FI_ENOPROTOOPT>,
                     refuse<-FI_ENOPROTOOPT>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                     refuse<-FI_ENOSYS>,      refuse<-FI_ENOSYS>};
fi_ops_cm name_ops{sizeof(fi_ops_cm),  refuse<-FI_ENOSYS>, get_name,           refuse<-FI_ENOSYS>,
                   refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>,
                   refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};
fi_ops_msg message_ops{
    sizeof(fi_ops_msg), receive, refuse<-FI_ENOSYS>, receive_message,   send, refuse<-FI_ENOSYS>,
    refuse<-FI_ENOSYS>, inject,  refuse<-FI_ENOSYS>, refuse<-FI_ENOSYS>};

}  // namespace

fid_ep endpoint_ops(void* user_context) {
  return {.fid = {FI_CLASS_EP, user_context, &endpoint_fid_ops},
          .ops = &option_ops,
          .cm = &name_ops,
          .msg = &message_ops,
          .rma = nullptr,
          .tagged = nullptr,
          .atomic = nullptr,
          .collective = nullptr};
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** out, void* context) {
  const Locked locked;
  *out = new (std::nothrow) Endpoint(*static_cast<Domain*>(domain), *info, context);
  return *out != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace pullman::standin
