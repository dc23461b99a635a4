#include "ofi/endpoint.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <mutex>

#include "ofi/address_vector.h"
#include "ofi/completion_queue.h"
#include "ofi/counter.h"
#include "ofi/domain.h"
#include "ofi/endpoint_calls.h"
#include "ofi/errors.h"
#include "ofi/guarded.h"
#include "ofi/progress_thread.h"
#include "ofi/provider.h"
#include "ofi/shared_receive.h"
#include "ofi/shared_transmit.h"

namespace pullman::ofi {

namespace {

bool is_shared(std::size_t contexts) {
  return contexts == FI_SHARED_CONTEXT;
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, Form form, void* context)
    : domain_(domain),
      triggers_(domain.triggers()),
      caps_(info.caps),
      is_reached_((info.caps & (FI_RMA | FI_ATOMIC)) != 0),
      requested_address_(RequestedAddress::from(info)),
      shares_transmit_(form == Form::kPlain && is_shared(info.ep_attr->tx_ctx_cnt)),
      shares_receive_(form == Form::kPlain && is_shared(info.ep_attr->rx_ctx_cnt)) {
  const std::size_t fid_class = form == Form::kPlain ? FI_CLASS_EP : FI_CLASS_SEP;
  handle_.fid = {.fclass = fid_class, .context = context, .ops = &endpoint_object_operations()};
  fill_tables(handle_);
  handle_.endpoint = this;
  handle_.lane = &own_;
  if (form == Form::kScalable) {
    transmitters_.resize(std::max<std::size_t>(info.ep_attr->tx_ctx_cnt, 1));
    receivers_.resize(std::max<std::size_t>(info.ep_attr->rx_ctx_cnt, 1));
  }
  handle_.send_flags = info.tx_attr != nullptr ? info.tx_attr->op_flags : 0;
  handle_.receive_flags = info.rx_attr != nullptr ? info.rx_attr->op_flags : 0;
  domain_.hold();
}

Endpoint::~Endpoint() {
  domain_.release();
}

int Endpoint::open(fid_domain* domain, fi_info* info, fid_ep** out, void* context) {
  return open(Form::kPlain, domain, info, out, context);
}

int Endpoint::open_scalable(fid_domain* domain, fi_info* info, fid_ep** out, void* context) {
  return open(Form::kScalable, domain, info, out, context);
}

int Endpoint::open(Form form, fid_domain* domain, fi_info* info, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    if (info == nullptr || info->ep_attr == nullptr) return -FI_EINVAL;
    const fi_ep_attr& asked = *info->ep_attr;
    if (asked.type != FI_EP_RDM && asked.type != FI_EP_UNSPEC) return -FI_EINVAL;
    if (form == Form::kScalable &&
        (asked.tx_ctx_cnt > kMaxContexts || asked.rx_ctx_cnt > kMaxContexts)) {
      return -FI_EINVAL;
    }
    auto* endpoint = new Endpoint(Domain::from(domain), *info, form, context);
    *out = &endpoint->handle_;
    return 0;
  });
}

void Endpoint::open_context() {
  if (context_) return;
  Config config = requested_address_.config();
  if (vector_ != nullptr) config.max_peers = std::max(config.max_peers, vector_->expected());
  context_ = std::make_unique<Context>(config);
  close_timeout_ = config.close_timeout;
  watched_descriptor_ = context_->wait_fd();
  for (CompletionQueue* one : queues()) one->attach(*this);
  for (Counter* one : counters_) one->attach(*this);
  domain_.progress_thread().add(*this);
  if (vector_ != nullptr) vector_->introduce(*this);
  domain_.regions().open_to(*this);
}

bool Endpoint::has_work() const {
  pollfd one{.fd = watched_descriptor_, .events = POLLIN, .revents = 0};
  return poll(&one, 1, 0) > 0;
}

// Any of its handles opens the NICs, the first one does.
int Endpoint::enable(EndpointHandle& handle) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    Lane& lane = *handle.lane;
    if (lane.sends || lane.receives) return 0;
    if (const Side* side = side_of(handle); side != nullptr && side->closing) {
      return -FI_EOPBADSTATE;
    }
    if (vector_ == nullptr) return -FI_ENOAV;
    if (!is_fully_bound()) return -FI_EOPBADSTATE;
    open_context();
    const std::size_t fid_class = handle.fid.fclass;
    lane.sends = fid_class == FI_CLASS_EP || fid_class == FI_CLASS_TX_CTX;
    lane.receives = (fid_class == FI_CLASS_EP && !shares_receive_) || fid_class == FI_CLASS_RX_CTX;
    if (shared_receive_ != nullptr) match_shared_receive(false);  // what came before
    return 0;
  });
}

template <typename Call>
ssize_t Endpoint::call(const Call& asked) {
  if (is_later(asked)) return defer(asked);
  Locked locked(domain_.lock());
  return begin(asked);
}
template ssize_t Endpoint::call(const SendCall& asked);
template ssize_t Endpoint::call(const ReceiveCall& asked);
template ssize_t Endpoint::call(const MemoryCall& asked);
template ssize_t Endpoint::call(const AtomicCall& asked);

int Endpoint::connect(fi_addr_t number, const Address& address) {
  if (!context_) return 0;  // when it is opened
  return -guarded([&]() -> int {
    peers_.set(number, context_->connect(address.text()));
    return 0;
  });
}

// The peer stays connected: it may still send, and other numbers may mean it. One that never
// answered, or is gone, makes room.
void Endpoint::forget(fi_addr_t number) {
  note_call();
  const PeerId peer = peers_.peer(number);
  peers_.erase(number);
  if (!context_ || peer == kAnyPeer || peers_.number(peer) != FI_ADDR_NOTAVAIL) return;
  const PeerState state = context_->peer_state(peer);
  if (state == PeerState::kConnecting || state == PeerState::kGone) context_->abandon(peer);
}

void Endpoint::close_context() {
  if (context_ && context_->close() == Status::kTimedOut) {
    FI_WARN(
        &provider(), FI_LOG_EP_CTRL,
        "an endpoint is closed before it is known that all has arrived: FI_PULLMAN_CLOSE_TIMEOUT "
        "is over\n");
  }
  context_.reset();
}

int Endpoint::close(EndpointHandle& handle) {
  if (&handle != &handle_) {
    Side* side = nullptr;
    {
      Locked locked(domain_.lock());
      side = side_of(handle);
      if (side == nullptr) --handle.lane->aliases;
    }
    if (side != nullptr) return close_side(*side);
    delete &handle;
    return 0;
  }
  {
    std::unique_lock locked(domain_.lock());
    if (own_.aliases != 0 || any_side_open()) return -FI_EBUSY;
    closing_ = true;
    if (transmit_ != nullptr) transmit_->release();
    if (context_) domain_.progress_thread().remove(*this);
    for (CompletionQueue* one : queues()) one->detach(*this);
    for (Counter* one : counters_) one->detach(*this);
    triggers_.forget(*this);
    if (vector_ != nullptr) vector_->detach(*this);
    domain_.regions().close_to(*this);
    // From here on nobody else knows it, but for endpoints that share its receives; what it waits
    // for may need the domain's other endpoints.
    if (shared_receive_ == nullptr) locked.unlock();
    close_context();
    if (shared_receive_ != nullptr) shared_receive_->remove(*this);
  }
  delete this;
  return 0;
}

}  // namespace pullman::ofi
