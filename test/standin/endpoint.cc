#include "standin/endpoint.h"

#include <arpa/inet.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "standin/domain.h"
#include "standin/endpoint_ops.h"
#include "standin/queues.h"
#include "standin/vector.h"

namespace pullman::standin {
namespace {

constexpr std::size_t kLargestDatagram = 65536;
constexpr int kScribble = 0xA5;  // contents of a prefix after the hardware has written it

int ordered_error() {
  const int error = world().controls.orders.error;
  return error != 0 ? error : FI_EIO;
}

}  // namespace

Endpoint::Endpoint(Domain& owner, const fi_info& info, void* user_context)
    : fid_ep(endpoint_ops(user_context)),
      domain(owner),
      variant(variant_of(info)),
      send_depth(std::min(info.tx_attr->size, variant.queue_depth)),
      receive_depth(std::min(info.rx_attr->size, variant.queue_depth)),
      arriving_(kLargestDatagram) {
  wanted.sin_family = AF_INET;
  wanted.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (info.src_addr != nullptr && info.src_addrlen == sizeof wanted) {
    std::memcpy(&wanted, info.src_addr, sizeof wanted);
  }
  ++domain.endpoints;
}

Endpoint::~Endpoint() {
  --domain.endpoints;
  std::erase(world().endpoints, this);
  if (vector != nullptr) --vector->bound;
  if (send_completions != nullptr) --send_completions->bound;
  if (receive_completions != nullptr) --receive_completions->bound;
  if (socket >= 0) close(socket);
}

int Endpoint::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass == FI_CLASS_EQ) return 0;
  if (other->fclass == FI_CLASS_AV && vector == nullptr) {
    vector = static_cast<AddressVector*>(reinterpret_cast<fid_av*>(other));
    ++vector->bound;
    return 0;
  }
  if (other->fclass != FI_CLASS_CQ) return -FI_EINVAL;
  auto* queue = static_cast<CompletionQueue*>(reinterpret_cast<fid_cq*>(other));
  if ((flags & FI_TRANSMIT) != 0) {
    send_completions = queue;
    queue->for_sends = true;
    ++queue->bound;
  }
  if ((flags & FI_RECV) != 0) {
    receive_completions = queue;
    ++queue->bound;
  }
  return 0;
}

int Endpoint::enable() {
  if (vector == nullptr) return -FI_ENOAV;
  if (send_completions == nullptr || receive_completions == nullptr) return -FI_ENOCQ;
  socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -errno;
  const int room = 1 << 20;
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&wanted), sizeof wanted) != 0) return -errno;
  enabled = true;
  world().endpoints.push_back(this);
  return 0;
}

sockaddr_in Endpoint::name() const {
  sockaddr_in own = wanted;
  socklen_t length = sizeof own;
  if (enabled) getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length);
  return own;
}

int Endpoint::post_send(const Work& work) {
  if (!demand(enabled, "a send was posted before the endpoint was enabled")) return -FI_EOPBADSTATE;
  if (World::take(world().controls.orders.refuse_sends)) return -FI_EAGAIN;
  Tallies& tallies = world().controls.tallies;
  const bool fits = work.length >= variant.send_prefix &&
                    work.length <= variant.send_prefix + variant.payload_bytes;
  if (!demand(sends.size() + send_completions->entries.size() < send_depth,
              "the send queue was overrun") ||
      !demand(fits, "a send was of an impossible length") ||
      !domain.may_use(work.descriptor, work.bytes, work.length, FI_SEND) ||
      vector->find(work.to) == nullptr) {
    return -FI_EINVAL;
  }
  for (const Work& posted : sends) {
    demand(posted.bytes != work.bytes && posted.context != work.context,
           "a buffer was sent from while another send of it was posted");
  }
  sends.push_back(work);
  ++tallies.sends;
  tallies.max_sends = std::max<std::uint64_t>(tallies.max_sends, sends.size());
  return 0;
}

int Endpoint::post_receive(const Work& work, bool more) {
  if (!demand(enabled, "a receive was posted before the endpoint was enabled")) {
    return -FI_EOPBADSTATE;
  }
  if (!demand(receives.size() + announced.size() < receive_depth,
              "the receive queue was overrun") ||
      !demand(work.length > variant.receive_prefix, "a receive buffer had no room for a prefix") ||
      !domain.may_use(work.descriptor, work.bytes, work.length, FI_RECV)) {
    return -FI_EINVAL;
  }
  for (const Work& posted : receives) {
    demand(posted.context != work.context, "a buffer was posted twice");
  }
  announced.push_back(work);
  if (more) return 0;
  receives.insert(receives.end(), announced.begin(), announced.end());
  announced.clear();
  return 0;
}

int Endpoint::inject(const void* bytes, std::size_t length, fi_addr_t to) {
  if (length > variant.inject_bytes + variant.send_prefix || length < variant.send_prefix) {
    return -FI_EINVAL;
  }
  const sockaddr_in* address = vector->find(to);
  if (address == nullptr) return -FI_EINVAL;
  const auto* payload = static_cast<const std::byte*>(bytes) + variant.send_prefix;
  if (to_itself(*address)) return 0;
  sendto(socket, payload, length - variant.send_prefix, 0,
         reinterpret_cast<const sockaddr*>(address), sizeof *address);
  return 0;
}

void Endpoint::transmit_posted() {
  if (world().controls.orders.hold_sends) return;
  while (!sends.empty()) {
    const Work work = sends.front();
    sends.pop_front();
    transmit(work);
  }
}

void Endpoint::transmit(const Work& work) {
  if (World::take(world().controls.orders.fail_sends)) {
    send_completions->push(work.context, FI_SEND | FI_MSG, 0, ordered_error());
    return;
  }
  std::memset(work.bytes, kScribble, variant.send_prefix);
  const sockaddr_in* to = vector->find(work.to);
  if (to != nullptr && !to_itself(*to)) {
    sendto(socket, work.bytes + variant.send_prefix, work.length - variant.send_prefix, 0,
           reinterpret_cast<const sockaddr*>(to), sizeof *to);
  }
  send_completions->push(work.context, FI_SEND | FI_MSG, 0, 0);
}

// The NIC does not loop back: packets to itself leave and are not received.
bool Endpoint::to_itself(const sockaddr_in& to) const {
  const sockaddr_in own = name();
  return to.sin_port == own.sin_port && to.sin_addr.s_addr == own.sin_addr.s_addr;
}

void Endpoint::deliver_arrived() {
  for (;;) {
    const ssize_t got = recv(socket, arriving_.data(), arriving_.size(), MSG_DONTWAIT);
    if (got < 0) {
      if (errno == ECONNREFUSED) continue;  // of an earlier send; a wire has no such error
      return;
    }
    deliver(arriving_.data(), static_cast<std::size_t>(got));
  }
}

void Endpoint::deliver(const std::byte* datagram, std::size_t length) {
  Controls& controls = world().controls;
  if (receives.empty()) {
    ++controls.tallies.receives_dropped;
    return;
  }
  const Work work = receives.front();
  receives.pop_front();
  constexpr std::uint64_t kFlags = FI_RECV | FI_MSG;
  if (World::take(controls.orders.fail_receives)) {
    receive_completions->push(work.context, kFlags, 0, ordered_error());
    return;
  }
  const std::size_t room = work.length - variant.receive_prefix;
  const bool cut = length > room || World::take(controls.orders.truncate_receives);
  std::memset(work.bytes, kScribble, variant.receive_prefix);
  std::memcpy(work.bytes + variant.receive_prefix, datagram, std::min(length, room));
  receive_completions->push(work.context, kFlags, variant.receive_prefix + std::min(length, room),
                            cut ? FI_ETRUNC : 0);
}

bool Endpoint::sends_to(fi_addr_t to) const {
  return std::any_of(sends.begin(), sends.end(), [&](const Work& w) { return w.to == to; });
}

bool Endpoint::uses(const void* descriptor) const {
  const auto mine = [&](const Work& work) { return work.descriptor == descriptor; };
  return std::any_of(sends.begin(), sends.end(), mine) ||
         std::any_of(receives.begin(), receives.end(), mine);
}

}  // namespace pullman::standin
