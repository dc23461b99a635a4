#include "engine/memory_receiver.h"

#include <algorithm>
#include <utility>

namespace pullman::engine {

std::size_t MemoryReceiver::receive_all(Instant now) {
  polled_at_ = now;
  retry_at_ = kNever;
  if (look_again_at_ <= now) look_again_at_ = kNever;
  backpressure_.begin_turn(now, inbox_counters_, std::exchange(deferred_, false));
  std::size_t received = 0;
  peers_.for_each([&](Peer& peer) { received += receive(now, peer, Extent::kShareOfTurn); });
  if (received != 0) poller_.note_memory_active(now);
  return received;
}

void MemoryReceiver::drain(Instant now, Peer& peer) {
  if (peer.memory->rail) receive(now, peer, Extent::kAll);
}

// A peer that is being left, or is gone, is not read: what it is told has arrived must stay true.
std::size_t MemoryReceiver::receive(Instant now, Peer& peer, Extent extent) {
  MemoryLink& memory = *peer.memory;
  MemoryRail& rail = *memory.rail;
  if (memory.state == MemoryState::kOffered) [[unlikely]] {
    setup_.activate_if_joined(peer);
    if (memory.state == MemoryState::kOffered) {
      if (rail.is_over())
        setup_.leave(peer, "it was ended, or overwritten, before the peer joined");
      return 0;
    }
  }
  const std::uint64_t unexpected = inbox_counters_.unexpected;
  std::size_t count = 0;
  fault_ = nullptr;
  referred_ = 0;
  while (peer.phase < Phase::kFarewell) {
    const auto record = rail.front();
    if (!record) break;
    if (!handle(peer, *record)) {
      note_stuck(now, memory);
      break;
    }
    memory.stuck_since = kNever;
    rail.pop();
    ++count;
    if (extent == Extent::kAll) continue;
    const bool pauses =
        inbox_counters_.unexpected != unexpected && backpressure_.due(inbox_counters_);
    deferred_ = pauses || referred_ >= kReferredPerTurn || count == kRecordsPerTurn || deferred_;
    if (deferred_) [[unlikely]]
      break;
  }
  if (count != 0) {
    stats_.memory_packets_received += count;
    rail.found_news();
    set_heard(peer, now);
  }
  // Of a record that is refused some frames may have been acted on.
  if (count != 0 || memory.is_stuck()) frame_handler_.follow_up(now, peer);
  // Whether the peer has read what we sent can wait until the program has had its turn with what
  // has come: to look costs as much as to receive it.
  memory.collect_due = count != 0 && !memory.collect_due;
  if (!memory.collect_due) collect(now, peer);
  if (fault_ == nullptr && rail.is_over()) fault_ = "the peer has ended it";
  if (fault_ != nullptr) [[unlikely]] {
    setup_.leave(peer, fault_);
  } else if (rail.must_wake() || memory.wake_due) [[unlikely]] {
    setup_.wake(peer);
  }
  return count;
}

// There is no memory for the next record, or its bytes cannot be read, perhaps since the peer has
// been killed, of which the watch hears. If that lasts, the peer had better use a NIC, where what
// comes behind may be handled.
void MemoryReceiver::note_stuck(Instant now, MemoryLink& memory) {
  if (fault_ != nullptr) return;
  memory.stuck_since = std::min(memory.stuck_since, now);
  retry_at_ = std::min(retry_at_, now + kRetry);
  if (now - memory.stuck_since >= kMaxStuck) fault_ = "its next record cannot be handled";
}

// Returns false if the record stays: there is no memory for it, or a fault ends the rail.
bool MemoryReceiver::handle(Peer& peer, std::span<const std::byte> record) {
  if (peer.memory->rail->is_reference()) return handle_reference(peer, record);
  if (!frames_.read(record)) {
    fault_ = "the peer has written what is no frame";
    return false;
  }
  const FrameEffect effect = frame_handler_.take(peer, frames_);
  if (effect.bye) fault_ = "the peer has said BYE in it";
  return !effect.refused && !effect.bye;
}

bool MemoryReceiver::handle_reference(Peer& peer, std::span<const std::byte> record) {
  const auto reference = MemoryRail::reference(record);
  wire::Frame chunk;
  if (!reference || reference->length > wire::kMaxReferenceBytes ||
      !wire::read_chunk_elsewhere(reference->frame, reference->length, chunk)) {
    fault_ = "the peer has written what is no reference";
    return false;
  }
  std::span<std::byte> place = peer.inbox.place_for(chunk);
  if (place.empty()) {
    staging_.resize(std::max(staging_.size(), chunk.data.size()));
    place = std::span(staging_).first(chunk.data.size());
  }
  if (!peer.memory->rail->read(reference->address, place)) {
    if (peer.memory->rail->pair().has_ended()) fault_ = "the peer has ended it";
    return false;
  }
  referred_ += place.size();
  chunk.data = place;
  return peer.inbox.handle_chunk(chunk) != message::Taken::kRefused;
}

// Gives back what the peer has read, and goes on with what waited for that.
void MemoryReceiver::collect(Instant now, Peer& peer) {
  MemoryRail& rail = *peer.memory->rail;
  bool any = false;
  while (Packet* packet = rail.take_read()) {
    any = true;
    peer.outbox.handle_acked(*packet);
    reclaimer_.release(*packet);
  }
  if (any) {
    rail.found_news();
    set_heard(peer, now);
    peer.news_at = now;
    peer.outbox.note_ack();
    if (peer.phase == Phase::kClosing) lifecycle_.begin_leaving(now, peer);
  }
  if (rail.flush()) any = true;
  if (any && has_work(peer)) ready_.mark(peer);
}

bool MemoryReceiver::prepare_to_block() {
  using MayBlock = MemoryRail::MayBlock;
  bool may = !has_deferred();
  peers_.for_each([&](Peer& peer) {
    MemoryLink& memory = *peer.memory;
    const bool joins = memory.state == MemoryState::kOffered && memory.rail->pair().has_joined();
    const bool stays = memory.is_stuck() || peer.phase >= Phase::kFarewell;
    const MayBlock rail_may = memory.rail->prepare_to_block(stays);
    if (rail_may == MayBlock::kBriefly) look_again_at_ = polled_at_ + shm::Pair::kSettle;
    may = rail_may != MayBlock::kNo && !joins && may;
  });
  return may;
}

}  // namespace pullman::engine
