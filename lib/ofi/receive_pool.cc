#include "ofi/receive_pool.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "ofi/address_vector.h"
#include "ofi/capabilities.h"
#include "ofi/domain.h"
#include "ofi/endpoint.h"
#include "ofi/endpoint_calls.h"
#include "ofi/guarded.h"
#include "ofi/promises.h"

namespace pullman::ofi {
namespace {

constexpr std::uint64_t kRefusedFlags = FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER;

bool takes_many(const ReceiveCall& call) {
  return call.space == Space::kMessages && (call.flags & FI_MULTI_RECV) != 0;
}

}  // namespace

ReceivePool::ReceivePool(Domain& domain, std::uint64_t flags, void* context)
    : fid_ep{}, domain_(domain), flags_(flags) {
  fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &pool_object_operations()};
  fill_pool_tables(*this);
  domain_.hold();
}

ReceivePool::~ReceivePool() {
  domain_.release();
}

int ReceivePool::open(fid_domain* domain, fi_rx_attr* attributes, fid_ep** out, void* context) {
  return guarded([&]() -> int {
    if (attributes != nullptr && unmet(*attributes) != nullptr) return -FI_EINVAL;
    const std::uint64_t flags = attributes != nullptr ? attributes->op_flags : 0;
    if (attributes != nullptr) describe(*attributes);
    *out = new ReceivePool(Domain::from(domain), flags, context);
    return 0;
  });
}

int ReceivePool::close() {
  {
    Locked locked(domain_.lock());
    if (!members_.empty()) return -FI_EBUSY;
  }
  delete this;
  return 0;
}

void ReceivePool::remove(const Endpoint& endpoint) noexcept {
  std::erase(members_, &endpoint);
  guarded([&] {
    sweep();
    return 0;
  });
}

bool ReceivePool::is_of_one_vector() const {
  return std::all_of(members_.begin(), members_.end(), [&](const Endpoint* one) {
    return one->vector() == nullptr || one->vector() == members_.front()->vector();
  });
}

ssize_t ReceivePool::receive(const ReceiveCall& call) {
  if ((call.flags & kRefusedFlags) != 0) return -FI_ENOSYS;
  if (call.count > kMaxSegments || (call.count != 0 && call.pieces == nullptr)) return -FI_EINVAL;
  const bool many = takes_many(call);
  if (many && (call.count != 1 || call.pieces[0].iov_len == 0)) return -FI_EINVAL;
  return guarded([&]() -> ssize_t {
    Locked locked(domain_.lock());
    Line& line = line_of(call.space);
    if (line.size() >= kMaxOperations) return -FI_EAGAIN;
    if (!members_.empty() && !members_.front()->knows_source(call)) return -FI_EINVAL;
    if (is_of_nobody(call)) {
      for (Endpoint* member : members_) member->find_again(call.from);
    }
    line.emplace_back(call);
    const Place last = std::prev(line.end());
    if (many) last->buffer.emplace(call, least_room_);
    serve(line, last);  // what has come was looked at for those before it
    return 0;
  });
}

bool ReceivePool::match(bool thoroughly) {
  sweep();
  bool any = false;
  for (const Space space : {Space::kTagged, Space::kMessages}) {
    for (Endpoint* member : members_) any = match(space, *member) || any;
    if (thoroughly) fail_orphaned_receives(line_of(space));
  }
  if (rescan_) look_again();
  return any;
}

// What is new there, each to the first it fits.
bool ReceivePool::match(Space space, Endpoint& endpoint) {
  Line& line = line_of(space);
  bool any = false;
  while (const auto message = endpoint.next_unexpected(space)) {
    const auto fits = [&](const Waiting& one) { return endpoint.fits(one.call(), *message); };
    const auto first = std::find_if(line.begin(), line.end(), fits);
    if (first == line.end()) continue;
    any = true;
    if (take(endpoint, line, first) == Taken::kNothing) rescan_ = true;
  }
  return any;
}

// Too many operations were under way.
void ReceivePool::look_again() {
  rescan_ = false;
  for (Line& line : lines_) {
    for (auto one = line.begin(); one != line.end();) serve(line, one++);
  }
}

// With what has come already.
void ReceivePool::serve(Line& line, Place one) {
  for (Endpoint* member : members_) {
    Taken taken = Taken::kOne;
    while (taken == Taken::kOne) taken = take(*member, line, one);
    if (taken == Taken::kLast) return;
  }
}

ReceivePool::Taken ReceivePool::take(Endpoint& endpoint, Line& line, Place one) {
  SharedBuffer* const buffer = one->buffer ? &*one->buffer : nullptr;
  if (!endpoint.take(one->call(), buffer)) return Taken::kNothing;
  if (buffer == nullptr) {
    line.erase(one);
  } else if (buffer->used_up) {
    leaving_.splice(leaving_.end(), line, one);
  } else {
    return Taken::kOne;
  }
  return Taken::kLast;
}

// The last message of a buffer gives it back, unless its endpoint has gone. Which one is the last
// may have been found out elsewhere: it failed, or the endpoint that it came to was told to cancel.
void ReceivePool::sweep() {
  if (std::exchange(used_up_elsewhere_, false)) take_out_used_up();
  for (auto one = leaving_.begin(); one != leaving_.end();) {
    const auto next = std::next(one);
    if (one->buffer->on_their_way == 0) {
      if (!one->buffer->told) refuse(one->call(), Status::kCancelled);
      leaving_.erase(one);
    }
    one = next;
  }
}

void ReceivePool::take_out_used_up() {
  for (Line& line : lines_) {
    for (auto one = line.begin(); one != line.end();) {
      const auto next = std::next(one);
      if (one->is_used_up()) leaving_.splice(leaving_.end(), line, one);
      one = next;
    }
  }
}

void ReceivePool::fail_orphaned_receives(Line& line) {
  for (auto one = line.begin(); one != line.end();) {
    const auto next = std::next(one);
    if (is_of_nobody(one->call())) withdraw(line, one, why_gone(one->call().from));
    one = next;
  }
}

// Who is to send it has gone: from one at least, and is connected to none.
bool ReceivePool::is_of_nobody(const ReceiveCall& call) const {
  if (call.from == FI_ADDR_UNSPEC) return false;
  const auto is = [&](PeerState state) {
    return std::any_of(members_.begin(), members_.end(),
                       [&](const Endpoint* one) { return one->state_of_source(call) == state; });
  };
  return is(PeerState::kGone) && !is(PeerState::kConnected);
}

Status ReceivePool::why_gone(fi_addr_t number) const {
  Status why = Status::kUnknownPeer;
  for (const Endpoint* one : members_) {
    const Status said = one->why_gone(number);
    if (said != Status::kOk) why = said;
  }
  return why;
}

// Messages that are on their way into a buffer arrive.
void ReceivePool::withdraw(Line& line, Place one, Status why) {
  if (one->buffer && one->buffer->on_their_way != 0) {
    one->buffer->used_up = true;
    leaving_.splice(leaving_.end(), line, one);
    return;
  }
  refuse(one->call(), why);
  line.erase(one);
}

void ReceivePool::refuse(const ReceiveCall& call, Status why) const {
  const auto teller = std::find_if(members_.begin(), members_.end(),
                                   [](const Endpoint* one) { return one->tells_receives(); });
  if (teller != members_.end()) (*teller)->refuse(call, why);
}

// Too late is no error.
int ReceivePool::cancel(void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    sweep();
    const auto is_meant = [&](const Waiting& one) { return one.call().context == context; };
    for (Line& line : lines_) {
      const auto found = std::find_if(line.begin(), line.end(), is_meant);
      if (found == line.end()) continue;
      withdraw(line, found, Status::kCancelled);
      return 0;
    }
    const bool late = std::any_of(members_.begin(), members_.end(),
                                  [&](Endpoint* one) { return one->is_receiving(context); });
    return late ? 0 : -FI_ENOENT;
  });
}

std::size_t ReceivePool::least_room() {
  Locked locked(domain_.lock());
  return least_room_;
}

void ReceivePool::set_least_room(std::size_t bytes) {
  Locked locked(domain_.lock());
  least_room_ = bytes;
}

}  // namespace pullman::ofi
