#include "ofi/endpoint.h"

#include <poll.h>
#include <rdma/fi_errno.h>

#include <algorithm>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint_calls.h"
#include "ofi/errors.h"
#include "ofi/event_queue.h"
#include "ofi/fids.h"
#include "ofi/guarded.h"
#include "ofi/progress_thread.h"

namespace pullman::ofi {

Endpoint::Endpoint(Domain& domain, const fi_info& info, void* context)
    : domain_(domain),
      triggers_(domain.triggers()),
      caps_(info.caps),
      is_reached_((info.caps & (FI_RMA | FI_ATOMIC)) != 0),
      place_(Place::from(info)) {
  handle_.fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &endpoint_object_operations()};
  fill_tables(handle_);
  handle_.endpoint = this;
  handle_.send_flags = info.tx_attr != nullptr ? info.tx_attr->op_flags : 0;
  handle_.receive_flags = info.rx_attr != nullptr ? info.rx_attr->op_flags : 0;
  domain_.hold();
}

Endpoint::~Endpoint() {
  domain_.release();
}

int Endpoint::open(fid_domain* domain, fi_info* info, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    if (info == nullptr || info->ep_attr == nullptr) return -FI_EINVAL;
    if (info->ep_attr->type != FI_EP_RDM && info->ep_attr->type != FI_EP_UNSPEC) return -FI_EINVAL;
    auto* endpoint = new Endpoint(Domain::from(domain), *info, context);
    *out = &endpoint->handle_;
    return 0;
  });
}

void Endpoint::open_context() {
  if (context_) return;
  Config config = place_.config();
  if (vector_ != nullptr) config.max_peers = std::max(config.max_peers, vector_->expected());
  context_ = std::make_unique<Context>(config);
  for (Waitable* one : waitables()) one->attach(*this);
  for (Counter* one : counters_) one->attach(*this);
  domain_.progress_thread().add(*this);
  if (vector_ != nullptr) vector_->introduce(*this);
  domain_.regions().open_to(*this);
}

std::vector<Waitable*> Endpoint::waitables() const {
  std::vector<Waitable*> all;
  for (Waitable* one :
       std::initializer_list<Waitable*>{outlets_.send_queue, outlets_.receive_queue,
                                        outlets_.send_counter, outlets_.receive_counter}) {
    if (one != nullptr) all.push_back(one);
  }
  return all;
}

int Endpoint::bind(struct fid& other, std::uint64_t flags) {
  Locked locked(domain_.lock());
  if (enabled_) return -FI_EOPBADSTATE;
  switch (other.fclass) {
    case FI_CLASS_AV:
      if (vector_ != nullptr) return -FI_EINVAL;
      vector_ = &object_of<AddressVector, fid_av>(&other);
      vector_->attach(*this);
      return 0;
    case FI_CLASS_CQ:
      return bind_queue(object_of<CompletionQueue, fid_cq>(&other), flags);
    case FI_CLASS_CNTR:
      return bind_counter(object_of<Counter, fid_cntr>(&other), flags);
    case FI_CLASS_EQ:
      return 0;  // an endpoint of this kind has no events of its own
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::bind_queue(CompletionQueue& queue, std::uint64_t flags) {
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (((flags & FI_TRANSMIT) != 0 && outlets_.send_queue != nullptr) ||
      ((flags & FI_RECV) != 0 && outlets_.receive_queue != nullptr)) {
    return -FI_EINVAL;
  }
  if ((flags & FI_TRANSMIT) != 0) {
    outlets_.send_queue = &queue;
    outlets_.selective_sends = selective;
  }
  if ((flags & FI_RECV) != 0) {
    outlets_.receive_queue = &queue;
    outlets_.selective_receives = selective;
  }
  queue.attach(*this);
  return 0;
}

int Endpoint::bind_counter(Counter& counter, std::uint64_t flags) {
  constexpr std::uint64_t kKinds =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((flags & ~kKinds) != 0) return -FI_EBADFLAGS;
  if ((flags & FI_SEND) != 0) outlets_.send_counter = &counter;
  if ((flags & FI_RECV) != 0) outlets_.receive_counter = &counter;
  if ((flags & FI_READ) != 0) outlets_.read_counter = &counter;
  if ((flags & FI_WRITE) != 0) outlets_.write_counter = &counter;
  if ((caps_ & FI_RMA_EVENT) != 0) {
    use_counters_.bind(counter, flags);
  } else if ((flags & FI_REMOTE_WRITE) != 0) {
    told_counter_ = &counter;
  }
  feed(counter);
  return 0;
}

void Endpoint::feed(Counter& counter) {
  if (std::find(counters_.begin(), counters_.end(), &counter) != counters_.end()) return;
  counters_.push_back(&counter);
  counter.attach(*this);
}

void Endpoint::stop_feeding(Counter& counter) {
  const auto own = {outlets_.send_counter, outlets_.receive_counter, outlets_.read_counter,
                    outlets_.write_counter, told_counter_};
  if (use_counters_.tells(counter) || std::find(own.begin(), own.end(), &counter) != own.end()) {
    return;
  }
  if (std::erase(counters_, &counter) != 0) counter.detach(*this);
}

bool Endpoint::has_work() const {
  pollfd one{.fd = wait_descriptor(), .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) > 0;
}

int Endpoint::enable() {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    if (enabled_) return 0;
    if (vector_ == nullptr) return -FI_ENOAV;
    open_context();
    enabled_ = true;
    return 0;
  });
}

int Endpoint::meet(fi_addr_t number, const Address& address) {
  if (!context_) return 0;  // when it is opened
  return -guarded([&]() -> int {
    peers_.set(number, context_->connect(address.text()));
    return 0;
  });
}

// The peer stays connected: it may still send, and other numbers may mean it. One that never
// answered, or is gone, makes room.
void Endpoint::forget(fi_addr_t number) {
  undo_wait();
  const PeerId peer = peers_.peer(number);
  peers_.erase(number);
  if (!context_ || peer == kAnyPeer || peers_.number(peer) != FI_ADDR_NOTAVAIL) return;
  const PeerState state = context_->peer_state(peer);
  if (state == PeerState::kConnecting || state == PeerState::kGone) context_->disconnect(peer);
}

int Endpoint::close(EndpointHandle& handle) {
  if (&handle != &handle_) {
    Locked locked(domain_.lock());
    --aliases_;
    delete &handle;
    return 0;
  }
  {
    Locked locked(domain_.lock());
    if (aliases_ != 0) return -FI_EBUSY;
    closing_ = true;
    if (context_) domain_.progress_thread().remove(*this);
    for (Waitable* one : waitables()) one->detach(*this);
    for (Counter* one : counters_) one->detach(*this);
    triggers_.forget(*this);
    if (vector_ != nullptr) vector_->detach(*this);
    domain_.regions().close_to(*this);
    if (context_) context_->close();
    context_.reset();
  }
  delete this;
  return 0;
}

}  // namespace pullman::ofi
