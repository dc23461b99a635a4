#include "nic/fabric/send_queue.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstring>

#include "base/check.h"
#include "nic/fabric/errors.h"

namespace pullman::nic::fabric {
namespace {

constexpr std::size_t kSendsPerRead = 64;

// Joins the packet's segments; returns their total length.
std::size_t gather(const Outgoing& packet, std::byte* out) {
  std::memcpy(out, packet.head.data(), packet.head.size());
  if (!packet.payload.empty()) {
    std::memcpy(out + packet.head.size(), packet.payload.data(), packet.payload.size());
  }
  return packet.head.size() + packet.payload.size();
}

}  // namespace

SendQueue::SendQueue(const Facts& facts, std::optional<Slab::Options> slots, fid_cq* completions)
    : prefix_(facts.send_prefix), verbs_status_(facts.verbs_status), completions_(completions) {
  if (!slots) {
    gathered_.resize(facts.payload_bytes);
    return;
  }
  slab_.emplace(*slots);
  free_.reserve(slab_->slots());
  for (std::size_t i = slab_->slots(); i > 0; --i)
    free_.push_back(static_cast<std::uint32_t>(i - 1));
}

std::size_t SendQueue::send_at_once(std::span<const Outgoing> batch, PortCounters& counters) {
  std::size_t taken = 0;
  for (const Outgoing& packet : batch) {
    const Outcome outcome = inject(packet, counters);
    if (outcome == Outcome::kRefused) break;
    counters.send_errors += outcome == Outcome::kLost;
    ++taken;
  }
  counters.sent += taken;
  counters.send_refused += taken < batch.size();
  return taken;
}

// Joining by copy and one fi_inject() beats fi_sendmsg() with two segments: copying a full packet
// from warm memory costs less than the kernel's reading of a message header, and there is no
// completion to read.
SendQueue::Outcome SendQueue::inject(const Outgoing& packet, PortCounters& counters) {
  const std::byte* bytes = packet.head.data();
  std::size_t length = packet.head.size();
  if (!packet.payload.empty()) {
    length = gather(packet, gathered_.data());
    bytes = gathered_.data();
  }
  PULLMAN_DCHECK(length <= gathered_.size());
  const ssize_t result = fi_inject(endpoint_, bytes, length, packet.to);
  if (result == 0) return Outcome::kTaken;
  return result == -FI_EAGAIN ? Outcome::kRefused : lost(result, counters);
}

std::size_t SendQueue::send_slots(std::span<const Outgoing> batch, PortCounters& counters) {
  // Reads completions when credits run low, not after every send.
  if (free_.size() < batch.size()) reclaim(counters);
  std::size_t taken = 0;
  for (const Outgoing& packet : batch) {
    if (free_.empty() || broken_) break;
    const Outcome outcome = post(packet, counters);
    if (outcome == Outcome::kRefused) break;
    counters.send_errors += outcome == Outcome::kLost;
    ++taken;
  }
  counters.sent += taken;
  counters.send_refused += taken < batch.size();
  return taken;
}

SendQueue::Outcome SendQueue::post(const Outgoing& packet, PortCounters& counters) {
  const std::uint32_t index = free_.back();
  std::byte* slot = slab_->slot(index);
  const std::size_t length = prefix_ + gather(packet, slot + prefix_);
  PULLMAN_DCHECK(length <= slab_->slot_bytes());
  const ssize_t result =
      fi_send(endpoint_, slot, length, slab_->descriptor(), packet.to, slab_->context(index));
  if (result == -FI_EAGAIN) return Outcome::kRefused;
  // The slot was not used: it stays the next free one.
  if (result != 0) return lost(result, counters);
  free_.pop_back();
  ++posted_;
  return Outcome::kTaken;
}

void SendQueue::release(const void* context) {
  const std::size_t index = slab_->index_of(context);
  PULLMAN_CHECK(index < slab_->slots());
  PULLMAN_CHECK(free_.size() < slab_->slots());
  free_.push_back(static_cast<std::uint32_t>(index));
  ++finished_;
}

void SendQueue::reclaim(PortCounters& counters) {
  if (!slab_ || broken_) return;
  std::array<fi_cq_msg_entry, kSendsPerRead> entries;
  // Bounded: no more completions than sends in flight.
  while (in_flight() > 0) {
    const ssize_t got = fi_cq_read(completions_, entries.data(), entries.size());
    if (got == -FI_EAGAIN || got == 0) return;
    if (got < 0) {
      if (!read_error(counters)) return;
      continue;
    }
    for (ssize_t i = 0; i < got; ++i) release(entries[static_cast<std::size_t>(i)].op_context);
  }
}

SendQueue::Outcome SendQueue::lost(ssize_t result, PortCounters& counters) {
  const int error = static_cast<int>(-result);
  counters.errors.note(class_of(error), error);
  return Outcome::kLost;
}

// A failed send is lost, and its slot is free. Returns false when there is nothing more to read.
bool SendQueue::read_error(PortCounters& counters) {
  fi_cq_err_entry error{};
  const ssize_t got = fi_cq_readerr(completions_, &error, 0);
  if (got == -FI_EAGAIN || got == 0) return false;
  const ErrorClass kind = got < 0 ? ErrorClass::kDevice : class_of(error, verbs_status_);
  counters.errors.note(kind, got < 0 ? static_cast<int>(-got) : error.err);
  const bool unreadable = got < 0 || error.op_context == nullptr;
  broken_ = broken_ || unreadable || is_fatal(kind);
  if (unreadable) return false;
  ++counters.send_errors;
  release(error.op_context);
  return true;
}

}  // namespace pullman::nic::fabric
