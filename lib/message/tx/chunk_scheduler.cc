#include "message/tx/chunk_scheduler.h"

#include <algorithm>

namespace pullman::message {

namespace {

bool is_ungranted(const Operation& op) {
  return stage_of(op) == SendStage::kAwaitingGrant || stage_of(op) == SendStage::kDeprioritised ||
         stage_of(op) == SendStage::kEager;
}

std::uint64_t left_of(const Operation& op) {
  return op.granted - op.sent;
}

}  // namespace

void ChunkScheduler::enqueue(SendQueue& queue, Operation& op) {
  if (op.special.has_priority) {
    queue.push_front(op);
  } else {
    queue.push_back(op);
  }
}

bool ChunkScheduler::handle_grant(Operation& op, std::uint64_t limit, std::uint32_t eager_bytes) {
  if (!is_ungranted(op)) return true;  // it had its grant before
  const bool is_short = op.size <= eager_bytes;
  if (limit > op.size || limit < op.granted || (is_short && !op.special.is_announced)) {
    return false;
  }
  op.granted = limit;
  if (is_short && op.sent < limit) {
    start_announced(op);
    return true;
  }
  remove(op);
  set_stage(op, SendStage::kBulk);
  enqueue(bulk_, op);
  note_cut(op);
  return true;
}

// A short message goes ahead of those that were sent after it, as if it had not had to wait.
void ChunkScheduler::start_announced(Operation& op) {
  remove(op);
  set_stage(op, SendStage::kEager);
  const auto behind = std::find_if(eager_.begin(), eager_.end(), [&](const Operation& it) {
    return op.special.has_priority || (it.message > op.message && !it.special.has_priority);
  });
  eager_.insert(behind, op);
}

void ChunkScheduler::note_cut(Operation& op) {
  if (op.sent == op.granted) settle(op);
}

void ChunkScheduler::settle(Operation& op) {
  const bool was_granted = stage_of(op) == SendStage::kBulk || op.special.is_announced;
  remove(op);
  if (was_granted || op.granted == op.size) {
    set_stage(op, SendStage::kSent);
  } else {
    await_grant(op);
  }
}

void ChunkScheduler::stop(Operation& op) {
  if (remove(op)) set_stage(op, SendStage::kSent);
}

bool ChunkScheduler::remove(Operation& op) {
  const auto erase_from = [&](SendQueue& queue) {
    queue.erase(queue.iterator_to(op));
    return true;
  };
  switch (stage_of(op)) {
    case SendStage::kEager:
      return erase_from(eager_);
    case SendStage::kDeprioritised:
      return erase_from(deprioritised_);
    case SendStage::kAwaitingGrant:
      return erase_from(awaiting_grant_);
    case SendStage::kBulk:
      return erase_from(bulk_);
    case SendStage::kWaiting:
    case SendStage::kSent:
    case SendStage::kArriving:
    case SendStage::kAwaitingResult:
      break;
  }
  return false;
}

void ChunkScheduler::clear() {
  for (SendQueue* queue : {&eager_, &deprioritised_, &awaiting_grant_, &bulk_}) queue->clear();
}

// Eager bytes keep the path busy for the round trip until the GRANT. While granted bytes of others
// do that, a message's first chunks are enough: the rest is granted when its turn comes, and has
// shorter heads.
Operation& ChunkScheduler::next() {
  if (bulk_.empty()) return eager_.empty() ? deprioritised_.front() : eager_.front();
  while (!eager_.empty() && eager_.front().sent > 0 && may_yield(eager_.front())) {
    Operation& op = eager_.front();
    eager_.pop_front();
    set_stage(op, SendStage::kDeprioritised);
    deprioritised_.push_back(op);
  }
  return eager_.empty() ? bulk_.front() : eager_.front();
}

bool ChunkScheduler::has_others(const Operation& op) const {
  const auto has_other = [&](const SendQueue& queue) {
    return !queue.empty() && (&queue.front() != &op || &queue.back() != &op);
  };
  return has_other(eager_) || has_other(bulk_) || has_other(deprioritised_);
}

std::uint64_t ChunkScheduler::bytes_left() const {
  constexpr std::size_t kLooked = 4;
  std::uint64_t bytes = 0;
  for (const SendQueue* queue : {&eager_, &bulk_, &deprioritised_}) {
    std::size_t looked = 0;
    for (auto op = queue->begin(); op != queue->end() && looked < kLooked; ++op, ++looked) {
      bytes += left_of(*op);
    }
  }
  return bytes;
}

// Calls visit(operation) for each that is being cut, until that returns false. Returns true if it
// never did.
template <typename Visit>
bool ChunkScheduler::visit_all(Visit visit) const {
  for (const SendQueue* queue : {&eager_, &bulk_, &deprioritised_}) {
    for (const Operation& op : *queue) {
      if (!visit(op)) return false;
    }
  }
  return true;
}

std::size_t ChunkScheduler::packets_left(ChunkHeads heads, std::size_t packet_bytes) const {
  constexpr std::size_t kFew = 4;
  std::size_t packets = 0;
  std::size_t messages = 0;
  const bool all = visit_all([&](const Operation& op) {
    if (++messages > kFew) return false;
    const bool bulk = heads != ChunkHeads::kFull && may_be_bulk(op);
    const std::size_t full = packet_bytes - (bulk ? wire::kBulkHeadBytes : kChunkHeadBytes);
    packets += (left_of(op) + full - 1) / full;
    return true;
  });
  return all ? std::min(packets, kManyPackets) : kManyPackets;
}

bool ChunkScheduler::several_fill(std::size_t packets, std::size_t packet_bytes) const {
  std::uint64_t bytes = 0;
  std::size_t messages = 0;
  return !visit_all([&](const Operation& op) {
    bytes += left_of(op);
    return ++messages <= 1 || bytes <= std::uint64_t{packets} * packet_bytes;
  });
}

}  // namespace pullman::message
