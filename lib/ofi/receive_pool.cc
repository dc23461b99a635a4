#include "ofi/receive_pool.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>

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

// A message that was on its way is not: its buffer is free for the others' messages.
void ReceivePool::remove(const Endpoint& endpoint) {
  std::erase(members_, &endpoint);
  match();
}

ssize_t ReceivePool::receive(const ReceiveCall& call) {
  if ((call.flags & kRefusedFlags) != 0) return -FI_ENOSYS;
  if (call.count > kMostPieces || (call.count != 0 && call.pieces == nullptr)) return -FI_EINVAL;
  const bool many = takes_many(call);
  if (many && (call.count != 1 || call.pieces[0].iov_len == 0)) return -FI_EINVAL;
  return guarded([&]() -> ssize_t {
    Locked locked(domain_.lock());
    Line& line = lines_[static_cast<std::size_t>(call.space)];
    if (line.waiting.size() >= kMostOperations) return -FI_EAGAIN;
    // What has come was looked at for those before it: it is this one's, if it fits.
    Line last;
    last.waiting.emplace_back(call);
    if (many) last.waiting.back().buffer.emplace(call, least_room_);
    if (!line.blocked) {
      match(last);
      line.blocked = last.blocked;
    }
    line.waiting.splice(line.waiting.end(), last.waiting);
    return 0;
  });
}

bool ReceivePool::match() {
  bool any = false;
  for (Line& line : lines_) any = match(line) || any;
  return any;
}

// In the order they were posted. The next message is the one's whose buffer another is on its way
// into; when that is complete, here we are again.
bool ReceivePool::match(Line& line) {
  line.blocked = false;
  bool any = false;
  for (auto one = line.waiting.begin(); one != line.waiting.end() && !line.blocked;) {
    const bool over = one->buffer ? fill(*one->buffer, any) : serve(one->call(), nullptr);
    any = any || over;
    line.blocked = one->buffer && one->buffer->busy;
    one = over ? line.waiting.erase(one) : std::next(one);
  }
  return any;
}

// As many as have come. True: it is used up.
bool ReceivePool::fill(SharedBuffer& buffer, bool& any) {
  while (!buffer.busy && !buffer.used_up && serve(buffer.call, &buffer)) any = true;
  return buffer.used_up && !buffer.busy;
}

// By one endpoint after the other: none is always the first.
bool ReceivePool::serve(const ReceiveCall& call, SharedBuffer* buffer) {
  for (std::size_t tried = 0; tried < members_.size(); ++tried) {
    if (turn_ >= members_.size()) turn_ = 0;
    if (members_[turn_++]->take(call, buffer)) return true;
  }
  return false;
}

// A buffer that a message is on its way into takes that one, and no other.
int ReceivePool::cancel(void* context) {
  return guarded([&]() -> int {
    Locked locked(domain_.lock());
    for (Line& line : lines_) {
      const auto found =
          std::find_if(line.waiting.begin(), line.waiting.end(),
                       [&](const auto& one) { return one.call().context == context; });
      if (found == line.waiting.end()) continue;
      if (found->buffer && found->buffer->busy) {
        found->buffer->used_up = true;
        return 0;
      }
      if (!members_.empty()) members_.front()->refuse(found->call(), Status::kCancelled);
      line.waiting.erase(found);
      return 0;
    }
    return -FI_ENOENT;
  });
}

void ReceivePool::set_least_room(std::size_t bytes) {
  Locked locked(domain_.lock());
  least_room_ = bytes;
}

}  // namespace pullman::ofi
