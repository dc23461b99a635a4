#include "ofi/shared_receive.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "ofi/address_vector.h"
#include "ofi/capabilities.h"
#include "ofi/domain.h"
#include "ofi/endpoint/shared_receiver.h"
#include "ofi/endpoint/tables.h"
#include "ofi/guarded.h"
#include "ofi/limits.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kRefusedFlags = FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER;

bool takes_many(const ReceiveCall& call) {
  return call.space == Space::kMessages && (call.flags & FI_MULTI_RECV) != 0;
}

}  // namespace

SharedReceiveContext::SharedReceiveContext(Domain& domain, std::uint64_t flags, void* context)
    : fid_ep{}, domain_(domain), flags_(flags) {
  fid = {
      .fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &shared_receive_object_operations()};
  fill_shared_receive_tables(*this);
  domain_.hold();
}

SharedReceiveContext::~SharedReceiveContext() {
  domain_.release();
}

int SharedReceiveContext::open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** out,
                               void* context) {
  return guarded([&]() -> int {
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    const std::uint64_t flags = attributes != nullptr ? attributes->op_flags : 0;
    if (attributes != nullptr) describe(*attributes);
    *out = new SharedReceiveContext(Domain::from(domain), flags, context);
    return 0;
  });
}

int SharedReceiveContext::close() {
  {
    Locked locked(domain_.lock());
    if (!members_.empty()) return -FI_EBUSY;
  }
  delete this;
  return 0;
}

void SharedReceiveContext::remove(const SharedReceiver& endpoint) noexcept {
  std::erase(members_, &endpoint);
  guarded([&] {
    sweep();
    return 0;
  });
}

bool SharedReceiveContext::has_one_address_vector() const {
  return std::all_of(members_.begin(), members_.end(), [&](const SharedReceiver* one) {
    return one->vector() == nullptr || one->vector() == members_.front()->vector();
  });
}

ssize_t SharedReceiveContext::receive(const ReceiveCall& call) {
  if ((call.flags & kRefusedFlags) != 0) return -FI_ENOSYS;
  if (call.count > kMaxSegments || (call.count != 0 && call.segments == nullptr)) return -FI_EINVAL;
  const bool many = takes_many(call);
  if (many && (call.count != 1 || call.segments[0].iov_len == 0)) return -FI_EINVAL;
  return guarded([&]() -> ssize_t {
    Locked locked(domain_.lock());
    Queue& queue = queue_of(call.space);
    if (queue.size() >= kMaxOperations) return -FI_EAGAIN;
    if (!members_.empty() && !members_.front()->has_source(call)) return -FI_EINVAL;
    if (is_orphaned(call)) {
      for (SharedReceiver* member : members_) member->reconnect_if_gone(call.from);
    }
    queue.emplace_back(call);
    const Position last = std::prev(queue.end());
    if (many) {
      last->buffer.emplace(call, min_room_);
      last->buffer->owner = this;
    }
    match_unexpected(queue, last);  // earlier messages fit no receive before it
    return 0;
  });
}

bool SharedReceiveContext::match(Orphans orphans) {
  sweep();
  bool any = false;
  for (const Space space : {Space::kTagged, Space::kMessages}) {
    for (SharedReceiver* member : members_) any = match(space, *member) || any;
    if (orphans == Orphans::kFail) fail_orphaned_receives(queue_of(space));
  }
  if (rescan_due_) rescan();
  return any;
}

// Gives each new message to the first receive that it matches.
bool SharedReceiveContext::match(Space space, SharedReceiver& endpoint) {
  Queue& queue = queue_of(space);
  bool any = false;
  while (const auto message = endpoint.next_unexpected(space)) {
    const auto fits = [&](const Waiting& one) { return endpoint.matches(one.call(), *message); };
    const auto first = std::find_if(queue.begin(), queue.end(), fits);
    if (first == queue.end()) continue;
    any = true;
    if (take(endpoint, queue, first) == Taken::kNothing) rescan_due_ = true;
  }
  return any;
}

// Matches receives again for which too many operations were outstanding.
void SharedReceiveContext::rescan() {
  rescan_due_ = false;
  for (Queue& queue : queues_) {
    for (auto one = queue.begin(); one != queue.end();) match_unexpected(queue, one++);
  }
}

// Matches a receive with the messages that have arrived before it.
void SharedReceiveContext::match_unexpected(Queue& queue, Position one) {
  for (SharedReceiver* member : members_) {
    Taken taken = Taken::kOne;
    while (taken == Taken::kOne) taken = take(*member, queue, one);
    if (taken == Taken::kLast) return;
  }
}

SharedReceiveContext::Taken SharedReceiveContext::take(SharedReceiver& endpoint, Queue& queue,
                                                       Position one) {
  MultiReceiveBuffer* const buffer = one->buffer ? &*one->buffer : nullptr;
  if (!endpoint.receive(one->call(), buffer)) return Taken::kNothing;
  if (buffer == nullptr) {
    queue.erase(one);
  } else if (buffer->used_up) {
    leaving_.splice(leaving_.end(), queue, one);
  } else {
    return Taken::kOne;
  }
  return Taken::kLast;
}

// The last message of a buffer returns it to the application, unless its endpoint has gone. An
// endpoint may have ended the buffer because a message failed or the receive was cancelled there.
void SharedReceiveContext::sweep() {
  if (std::exchange(used_up_elsewhere_, false)) take_out_used_up();
  for (auto one = leaving_.begin(); one != leaving_.end();) {
    const auto next = std::next(one);
    if (one->buffer->in_flight == 0) {
      if (!one->buffer->returned) report_failure(one->call(), Status::kCancelled);
      leaving_.erase(one);
    }
    one = next;
  }
}

void SharedReceiveContext::take_out_used_up() {
  for (Queue& queue : queues_) {
    for (auto one = queue.begin(); one != queue.end();) {
      const auto next = std::next(one);
      if (one->is_used_up()) leaving_.splice(leaving_.end(), queue, one);
      one = next;
    }
  }
}

void SharedReceiveContext::fail_orphaned_receives(Queue& queue) {
  for (auto one = queue.begin(); one != queue.end();) {
    const auto next = std::next(one);
    if (is_orphaned(one->call())) withdraw(queue, one, why_gone(one->call().from));
    one = next;
  }
}

// Whether the source of the receive has gone from at least one endpoint and is connected to none.
bool SharedReceiveContext::is_orphaned(const ReceiveCall& call) const {
  if (call.from == FI_ADDR_UNSPEC) return false;
  const auto is = [&](PeerState state) {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const SharedReceiver* one) { return one->source_state(call) == state; });
  };
  return is(PeerState::kGone) && !is(PeerState::kConnected);
}

Status SharedReceiveContext::why_gone(fi_addr_t number) const {
  Status why = Status::kUnknownPeer;
  for (const SharedReceiver* one : members_) {
    const Status said = one->peer_status(number);
    if (said != Status::kOk) why = said;
  }
  return why;
}

// Messages that are on their way into a buffer still arrive.
void SharedReceiveContext::withdraw(Queue& queue, Position one, Status why) {
  if (one->buffer && one->buffer->in_flight != 0) {
    one->buffer->used_up = true;
    leaving_.splice(leaving_.end(), queue, one);
    return;
  }
  report_failure(one->call(), why);
  queue.erase(one);
}

void SharedReceiveContext::report_failure(const ReceiveCall& call, Status why) const {
  const auto reporter =
      std::find_if(members_.begin(), members_.end(),
                   [](const SharedReceiver* one) { return one->reports_receives(); });
  if (reporter != members_.end()) (*reporter)->report_failure(call, why);
}

// A cancellation that comes too late is not an error.
int SharedReceiveContext::cancel(void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    sweep();
    const auto is_meant = [&](const Waiting& one) { return one.call().context == context; };
    for (Queue& queue : queues_) {
      const auto found = std::find_if(queue.begin(), queue.end(), is_meant);
      if (found == queue.end()) continue;
      withdraw(queue, found, Status::kCancelled);
      return 0;
    }
    const bool late = std::any_of(members_.begin(), members_.end(),
                                  [&](SharedReceiver* one) { return one->is_receiving(context); });
    return late ? 0 : -FI_ENOENT;
  });
}

std::size_t SharedReceiveContext::min_room() {
  Locked locked(domain_.lock());
  return min_room_;
}

void SharedReceiveContext::set_min_room(std::size_t bytes) {
  Locked locked(domain_.lock());
  min_room_ = bytes;
}

}  // namespace pullman::ofi
