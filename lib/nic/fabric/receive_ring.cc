#include "nic/fabric/receive_ring.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "nic/fabric/errors.h"

namespace pullman::nic::fabric {
namespace {

constexpr std::size_t kReceivesPerRead = 64;

}  // namespace

ReceiveRing::ReceiveRing(const Facts& facts, std::size_t packet_bytes, const Slab::Options& slots,
                         fid_cq* completions)
    : prefix_(facts.receive_prefix),
      packet_bytes_(packet_bytes),
      one_per_read_(facts.one_per_read),
      verbs_status_(facts.verbs_status),
      completions_(completions),
      slab_(slots),
      lent_(slots.slots, false) {
  idle_.reserve(slots.slots);
  for (std::size_t i = slots.slots; i > 0; --i) idle_.push_back(static_cast<std::uint32_t>(i - 1));
}

void ReceiveRing::start(fid_ep* endpoint) {
  endpoint_ = endpoint;
  post_idle();
}

std::size_t ReceiveRing::receive(std::span<Incoming> batch, PortCounters& counters) {
  std::array<fi_cq_msg_entry, kReceivesPerRead> completions;
  if (!idle_.empty()) post_idle();
  std::size_t count = 0;
  // Bounded even if only bad packets come: each read takes at least one completion, and its buffers
  // are reposted only at the next call.
  std::size_t reads_left = slab_.slots();
  while (count < batch.size() && reads_left-- > 0 && !broken_) {
    const std::size_t wanted = std::min(batch.size() - count, completions.size());
    const ssize_t got = fi_cq_read(completions_, completions.data(), wanted);
    if (got <= 0) {
      if (got == -FI_EAGAIN || got == 0 || !read_error(counters)) break;
      continue;
    }
    for (ssize_t i = 0; i < got; ++i) {
      count += accept(completions[static_cast<std::size_t>(i)], batch[count], counters);
    }
    if (!one_per_read_ && static_cast<std::size_t>(got) < wanted) break;
  }
  counters.received += count;
  return count;
}

// Fills `out`, unless the packet is unusable and its buffer stays here.
bool ReceiveRing::accept(const fi_cq_msg_entry& completion, Incoming& out, PortCounters& counters) {
  const std::size_t index = slab_.index_of(completion.op_context);
  PULLMAN_CHECK(index < slab_.slots());
  const bool too_long = completion.len > prefix_ + packet_bytes_;
  if (too_long || completion.len < prefix_) {
    ++(too_long ? counters.receive_truncated : counters.receive_errors);
    idle_.push_back(static_cast<std::uint32_t>(index));
    return false;
  }
  PULLMAN_DCHECK(!lent_[index]);
  lent_[index] = true;
  out.bytes = {slab_.slot(index) + prefix_, completion.len - prefix_};
  out.buffer = index;
  return true;
}

void ReceiveRing::give_back(std::span<const Incoming> batch) {
  for (const Incoming& packet : batch) {
    PULLMAN_CHECK(packet.buffer < slab_.slots() && lent_[packet.buffer]);
    lent_[packet.buffer] = false;
    idle_.push_back(static_cast<std::uint32_t>(packet.buffer));
  }
  post_idle();
}

// All but the last carry FI_MORE: one doorbell for all of them on devices that have one.
void ReceiveRing::post_idle() {
  void* descriptor = slab_.descriptor();
  while (!idle_.empty() && !broken_) {
    const std::uint32_t index = idle_.back();
    const iovec piece{slab_.slot(index), slab_.slot_bytes()};
    const fi_msg message{&piece, &descriptor, 1, FI_ADDR_UNSPEC, slab_.context(index), 0};
    if (fi_recvmsg(endpoint_, &message, idle_.size() > 1 ? FI_MORE : 0) != 0) return;
    idle_.pop_back();
  }
}

// A failed receive returns its buffer. Returns false when there is nothing more to read.
bool ReceiveRing::read_error(PortCounters& counters) {
  fi_cq_err_entry error{};
  const ssize_t got = fi_cq_readerr(completions_, &error, 0);
  if (got == -FI_EAGAIN || got == 0) return false;
  const bool unreadable = got < 0 || error.op_context == nullptr;
  const ErrorClass kind = got < 0 ? ErrorClass::kDevice : class_of(error, verbs_status_);
  broken_ = broken_ || unreadable || is_fatal(kind);
  const bool too_long = got > 0 && error.err == FI_ETRUNC;
  if (!too_long) counters.errors.note(kind, got < 0 ? static_cast<int>(-got) : error.err);
  if (unreadable) return false;
  ++(too_long ? counters.receive_truncated : counters.receive_errors);
  const std::size_t index = slab_.index_of(error.op_context);
  PULLMAN_CHECK(index < slab_.slots());
  idle_.push_back(static_cast<std::uint32_t>(index));
  return true;
}

}  // namespace pullman::nic::fabric
