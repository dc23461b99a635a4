#include "ofi/endpoint/endpoint.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "ofi/authorization_key.h"
#include "ofi/capabilities.h"
#include "ofi/endpoint/tables.h"
#include "ofi/guarded.h"
#include "ofi/limits.h"
#include "ofi/progress_thread.h"
#include "ofi/shared_receive.h"

namespace pullman::ofi {
namespace {

EndpointBinding::Shares shares_of(const fi_ep_attr& attributes) {
  return {.transmit = attributes.tx_ctx_cnt == FI_SHARED_CONTEXT,
          .receive = attributes.rx_ctx_cnt == FI_SHARED_CONTEXT};
}

std::size_t contexts(std::size_t asked) {
  return std::max<std::size_t>(asked, 1);
}

std::optional<crypto::Secret<32>> key_of(const fi_ep_attr& attributes, const Domain& domain) {
  const auto own = job_key_of(attributes.auth_key, attributes.auth_key_size);
  return own ? own : domain.job_key();
}

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, Form form, void* context)
    : domain_(domain),
      lanes_(form == Form::kPlain
                 ? Lanes()
                 : Lanes(contexts(info.ep_attr->tx_ctx_cnt), contexts(info.ep_attr->rx_ctx_cnt))),
      transport_(info, key_of(*info.ep_attr, domain)),
      poster_(transport_, connections_, operations_, (info.caps & FI_DIRECTED_RECV) != 0),
      remote_access_(transport_, connections_, lanes_, domain.regions(),
                     (info.caps & FI_RMA_EVENT) != 0 ? RemoteAccess::Counts::kAll
                                                     : RemoteAccess::Counts::kImmediateData),
      progress_(transport_, activity_, multi_receiver_, remote_access_, domain.triggers(),
                (info.caps & (FI_RMA | FI_ATOMIC)) != 0 ? EndpointProgress::Target::kYes
                                                        : EndpointProgress::Target::kNo),
      deferred_(domain, issuer_,
                (info.caps & FI_TRIGGER) != 0 ? DeferredIssuer::TriggeredCalls::kOffered
                                              : DeferredIssuer::TriggeredCalls::kRefused),
      binding_(domain, lanes_, connections_, operations_, remote_access_, progress_,
               shared_receiver_,
               form == Form::kPlain ? shares_of(*info.ep_attr) : EndpointBinding::Shares()) {
  const std::size_t fid_class = form == Form::kPlain ? FI_CLASS_EP : FI_CLASS_SEP;
  handle_.fid = {.fclass = fid_class, .context = context, .ops = &endpoint_object_operations()};
  fill_tables(handle_);
  handle_.endpoint = this;
  handle_.lane = &lanes_.own();
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

int Endpoint::bind(EndpointHandle& handle, struct fid& other, std::uint64_t flags) {
  return guarded([&] {
    Locked locked(domain_.lock());
    return binding_.bind(handle, other, flags);
  });
}

// The first handle that is enabled opens the NICs for all.
int Endpoint::enable(EndpointHandle& handle) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    Lane& lane = *handle.lane;
    if (lane.sends || lane.receives) return 0;
    if (lanes_.is_closing(handle)) return -FI_EOPBADSTATE;
    if (connections_.vector() == nullptr) return -FI_ENOAV;
    if (!binding_.is_complete()) return -FI_EOPBADSTATE;
    open_transport();
    const std::size_t fid_class = handle.fid.fclass;
    lane.sends = fid_class == FI_CLASS_EP || fid_class == FI_CLASS_TX_CTX;
    lane.receives =
        (fid_class == FI_CLASS_EP && !binding_.shares_receive()) || fid_class == FI_CLASS_RX_CTX;
    if (SharedReceiveContext* const shared = binding_.shared_receive()) {
      shared->match(SharedReceiveContext::Orphans::kKeep);  // messages that came before
    }
    return 0;
  });
}

void Endpoint::open_transport() {
  if (transport_.is_open()) return;
  transport_.open(connections_.expected_peers());
  binding_.attach_all();
  domain_.progress_thread().add(progress_);
  connections_.connect_all();
  domain_.regions().open_to(*transport_, binding_);
}

ssize_t Endpoint::cancel(Lane& lane, void* context) {
  Locked locked(domain_.lock());
  if (!transport_.is_open()) return -FI_EOPBADSTATE;
  activity_.note_call();
  if (receiver_.cancel(lane, context)) return 0;
  return domain_.triggers().cancel(lane, context) ? 0 : -FI_ENOENT;
}

// In a child of fork() all that the endpoint has is the parent's, which goes on using it.
int Endpoint::close(EndpointHandle& handle) {
  if (transport_.is_open() && transport_->is_inherited()) return 0;
  if (&handle == &handle_) return close_endpoint();
  ScalableContext* context = nullptr;
  {
    Locked locked(domain_.lock());
    context = lanes_.find(handle);
  }
  return context != nullptr ? close_context(*context) : close_alias(handle);
}

int Endpoint::close_endpoint() {
  {
    std::unique_lock locked(domain_.lock());
    if (lanes_.own().aliases != 0 || lanes_.any_open()) return -FI_EBUSY;
    operations_.stop_reporting();
    if (transport_.is_open()) domain_.progress_thread().remove(progress_);
    binding_.detach_all();
    domain_.triggers().forget(deferred_);
    connections_.unbind();
    if (transport_.is_open()) domain_.regions().close_to(*transport_);
    // From here on only endpoints that share its receives know the endpoint. What it waits for may
    // need the domain's other endpoints, and so the lock.
    SharedReceiveContext* const shared = binding_.shared_receive();
    if (shared == nullptr) locked.unlock();
    transport_.close();
    if (shared != nullptr) shared->remove(shared_receiver_);
  }
  delete this;
  return 0;
}

int Endpoint::close_alias(EndpointHandle& alias) {
  {
    Locked locked(domain_.lock());
    --alias.lane->aliases;
  }
  delete &alias;
  return 0;
}

// The endpoint goes on making progress, and operations of the context use the application's memory:
// they get as long to end as those of a closing endpoint. The lock is free meanwhile, because the
// context may wait for other threads.
int Endpoint::close_context(ScalableContext& context) {
  return guarded([&]() -> int {
    Lane& lane = context.lane;
    std::chrono::steady_clock::time_point end;
    {
      Locked locked(domain_.lock());
      if (lane.aliases != 0) return -FI_EBUSY;
      end = std::chrono::steady_clock::now() + transport_.close_timeout();
      context.state = ScalableContext::State::kClosing;
      withdraw(lane);
    }
    for (;;) {
      {
        Locked locked(domain_.lock());
        progress_.progress();
        if (!operations_.any_using_memory_of(lane)) {
          binding_.release(lane);
          context.state = ScalableContext::State::kClosed;
          return 0;
        }
      }
      if (std::chrono::steady_clock::now() >= end) return -FI_EBUSY;
      std::this_thread::yield();
    }
  });
}

// Lets nothing of the lane begin any more and takes back receives that have taken nothing. Reports
// nothing: completions would be of no use.
void Endpoint::withdraw(Lane& lane) {
  lane.sends = lane.receives = false;
  domain_.triggers().forget(lane);
  lane.multi_receive.close();
  operations_.withdraw(lane, transport_);
  peek_.discard_claimed(lane);
}

}  // namespace pullman::ofi
