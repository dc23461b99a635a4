// Decides when ACKs leave (wire.md 6): piggybacked on packets, or alone when they are due. It also
// keeps the ACK that came with a message until the program has had its turn with that message.
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

// A received ACK that came with a message: the program may answer the message before the ACK is
// processed.
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

  // Schedules the ACK that the rail's link may owe.
  void schedule(Instant now, Rail& rail);
  // Notes that a packet was stamped while an ACK was owed: it may carry that ACK.
  void note_piggyback(Rail& rail);
  // Makes due the ACKs whose delay has passed.
  void expire(Instant now, const PeerTable& peers);
  // Ends a turn: sends what is due.
  void send_due(Instant now) {
    const std::uint64_t before = std::exchange(messages_told_, inbox_counters_.messages);
    if (due_.empty()) [[likely]] {
      some_waited_ = false;
    } else {
      send_due(now, messages_told_ != before);
    }
  }

  bool any_due() const { return !due_.empty(); }
  Instant next_due() const { return timers_.next_due(); }

  // Forgets a rail that ends.
  void forget(Rail& rail);

  // The deferred ACK. Except for the program's answer, nothing may be sent to its rail's peer, and
  // no time may pass, before it is taken.
  const DeferredAck& deferred() const { return deferred_; }
  bool has_deferred() const { return deferred_.rail != nullptr; }
  void defer(const DeferredAck& ack) { deferred_ = ack; }
  // Takes the deferred ACK; its content stays readable until another one is deferred.
  Rail& take_deferred() { return *std::exchange(deferred_.rail, nullptr); }
  void drop_deferred() { deferred_.rail = nullptr; }
  // Returns whether the header acknowledges what the deferred ACK does.
  bool repeats_deferred(const Rail& rail, const wire::PacketHeader& header) const {
    const wire::PacketHeader& late = deferred_.header;
    return deferred_.rail == &rail && header.cumulative == late.cumulative &&
           header.credit == late.credit && header.late == late.late;
  }
  // Returns whether the message that the deferred ACK came with asked for an ACK, which may be held
  // back with it.
  bool deferred_owes() const;

 private:
  void send_due(Instant now, bool told);
  void send(Instant now, Rail& rail);

  const bool checksum_;
  const message::InboxCounters& inbox_counters_;
  Stats& stats_;
  const CreditAllocator& credits_;

  reliability::Floor<Timer> timers_;
  AckList due_;
  bool some_waited_ = false;  // an ACK was held back at the end of the last turn
  std::uint64_t messages_told_ = 0;
  DeferredAck deferred_;
};

}  // namespace pullman::engine
