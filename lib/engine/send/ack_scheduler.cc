#include "engine/send/ack_scheduler.h"

#include <array>

#include "engine/peer/peer_table.h"
#include "wire/frame.h"

namespace pullman::engine {

using reliability::AckNeed;

void AckScheduler::schedule(Instant now, Rail& rail) {
  const AckNeed need = rail.link.ack_need();
  if (need >= AckNeed::kEnough) {
    if (!rail.ack.is_linked()) due_.push_back(rail);
  } else if (need == AckNeed::kDelayed && !rail.ack_timer.checked_in()) {
    timers_.check_in(now, rail.ack_timer);
  }
}

void AckScheduler::note_piggyback(Rail& rail) {
  if (rail.link.ack_need() != AckNeed::kNone) return;
  ++stats_.acks_piggybacked;
  if (rail.ack_timer.checked_in()) timers_.check_out(rail.ack_timer);
}

void AckScheduler::expire(Instant now, const PeerTable& peers) {
  while (Timer* timer = timers_.evict(now)) {
    Rail& rail = peers.rail_of(*timer);
    if (rail.link.ack_need() != AckNeed::kNone && !rail.ack.is_linked()) due_.push_back(rail);
  }
}

void AckScheduler::forget(Rail& rail) {
  if (rail.ack.is_linked()) due_.erase(due_.iterator_to(rail));
  if (rail.ack_timer.checked_in()) timers_.check_out(rail.ack_timer);
}

bool AckScheduler::deferred_owes() const {
  return has_deferred() && deferred_.rail->link.ack_need() >= AckNeed::kEnough;
}

// An ACK that is asked for, or due for its number of packets, may be piggybacked on the answer to a
// message that the program is told of at the end of this turn: it waits until the end of the next
// one.
void AckScheduler::send_due(Instant now, bool told) {
  const bool may_wait = told && !some_waited_;
  some_waited_ = false;
  for (std::size_t left = due_.size(); left > 0; --left) {
    Rail& rail = due_.front();
    due_.pop_front();
    const AckNeed need = rail.link.ack_need();
    if (need == AckNeed::kEnough && may_wait) {
      due_.push_back(rail);
      some_waited_ = true;
    } else if (need != AckNeed::kNone) {
      send(now, rail);
    }
  }
}

// Sends an ACK alone, on the command channel. If the NIC has no room it is dropped: ACKs are
// cumulative, and a sender that misses one probes.
void AckScheduler::send(Instant now, Rail& rail) {
  if (rail.command_to == nic::kInvalidDestination || rail.peer.phase == Phase::kAnswering) return;
  std::array<std::byte, reliability::Link::kAckBytes> bytes;
  const std::size_t length =
      rail.link.write_ack(now, rail.peer.theirs, credits_.credit(rail), bytes.data());
  if (checksum_) wire::seal({bytes.data(), length}, {});
  if (rail.ack_timer.checked_in()) timers_.check_out(rail.ack_timer);
  ++stats_.acks_sent;
  command(rail).send_unremembered(
      {bytes.data(), length}, rail.command_to,
      {.peer = rail.peer.id.index, .rail = rail.number, .number = rail.link.last_ack_number()});
}

}  // namespace pullman::engine
