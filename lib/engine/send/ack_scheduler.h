// When ACKs leave (wire.md 6): those that ride on packets, those that are due, and the one that
// came with a message and is looked at when the program has had its turn with that.
#pragma once

#include <cstdint>

#include "engine/nics/credit_allocator.h"
#include "engine/peer/peer_table.h"
#include "message/rx/inbox.h"
#include "pullman/config.h"
#include "pullman/stats.h"
#include "reliability/hotel.h"
#include "wire/header.h"

namespace pullman::engine {

// The ACK that came with a message: the program may answer that before we look at it.
struct DeferredAck {
  Rail* rail = nullptr;  // null: there is none
  wire::PacketHeader header;
  Instant came_at{};
  Duration unpolled{};
  std::size_t module = 0;  // the NIC it came through
};

class AckScheduler {
 public:
  AckScheduler(const Config& config, const message::InboxCounters& inbox_counters, Stats& stats,
               const CreditAllocator& credits)
      : checksum_(config.checksum),
        inbox_counters_(inbox_counters),
        stats_(stats),
        credits_(credits),
        timers_(config.ack_delay) {}

  // The rail's link may owe an ACK.
  void schedule(Instant now, Rail& rail);
  // One was owed when a packet was stamped: it may have ridden along.
  void note_piggyback(Rail& rail);
  // Those whose delay has passed are due.
  void expire(Instant now, const PeerTable& peers);
  // Sends what is due.
  void send_due(Instant now);

  bool any_due() const { return !due_.empty(); }
  Instant next_due() const { return timers_.next_due(); }

  // The rail is no more.
  void forget(Rail& rail);

  // The deferred ACK: nothing may be sent to its rail's peer, nor time pass, before it is taken,
  // but for the answer of the program.
  const DeferredAck& deferred() const { return deferred_; }
  bool has_deferred() const { return deferred_.rail != nullptr; }
  void defer(const DeferredAck& ack) { deferred_ = ack; }
  // There is none any more; what it said stays readable until another one is deferred.
  Rail& take_deferred() { return *std::exchange(deferred_.rail, nullptr); }
  void drop_deferred() { deferred_.rail = nullptr; }
  // It says what the deferred one says.
  bool repeats_deferred(const Rail& rail, const wire::PacketHeader& header) const {
    const wire::PacketHeader& late = deferred_.header;
    return deferred_.rail == &rail && header.cumulative == late.cumulative &&
           header.credit == late.credit && header.late == late.late;
  }
  // The message that it came with asked for an ACK, which may be held back with it.
  bool deferred_owes() const;

 private:
  void send(Instant now, Rail& rail);

  const bool checksum_;
  const message::InboxCounters& inbox_counters_;
  Stats& stats_;
  const CreditAllocator& credits_;

  reliability::Floor<Timer> timers_;
  AckList due_;
  bool some_waited_ = false;  // at the end of the last turn
  std::uint64_t messages_told_ = 0;
  DeferredAck deferred_;
};

}  // namespace pullman::engine
