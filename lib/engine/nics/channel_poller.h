// Decides which channels are polled in a turn. Polling one costs a system call on kernel providers,
// and packets on another channel wait meanwhile: a channel that is quiet while another is not is
// polled only once in a while. Knows channels by their masks in the row (nic_table.h), and no
// packets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "engine/nics/nic_table.h"

namespace pullman::engine {

class ChannelPoller {
 public:
  explicit ChannelPoller(const NicTable& nics) : nics_(nics) {}

  // --- which channels there are

  // Adds the slot's channels. `attended`: peers have rails there, or it is no further address of
  // its NIC. Channels of unattended addresses are polled seldom, since a caller there can wait a
  // moment.
  void add(std::size_t slot, bool attended);
  void attend(std::size_t slot);
  // Forgets that received packets were left in the slot's channels: they are gone.
  void forget(std::size_t slot);

  // --- in a turn

  void begin_turn() { resting_until_ = Instant::max(); }
  // Returns the channels to poll this turn, a bit for the place of each. A process that sleeps is
  // woken by any channel (nic::Port::wait_fd).
  std::uint32_t due(Instant now) {
    if (now < memory_active_until_) return now < quiet_due_ ? 0 : beside_memory(now);
    if (now >= unattended_due_) [[unlikely]]
      return all_channels(now);
    if (active_ == 0 || active_ == attended_) return attended_;
    return now < quiet_due_ ? active_ : with_quiet_channels(now);
  }
  // Returns whether these are all at which peers have rails.
  bool are_all(std::uint32_t channels) const { return (attended_ & ~channels) == 0; }
  void note_active(std::size_t place) { active_ |= std::uint32_t{1} << place; }
  // Notes that nothing has come on the channel for a while.
  void note_quiet(Instant now, const Channel& channel) {
    if ((active_ & channel.mark()) == 0) return;
    active_ &= ~channel.mark();
    quiet_since_ = now;
  }
  void end_turn(std::size_t received) { last_received_ = received; }
  // Notes that much was sent at once: for a while only active channels are polled, since that is
  // where answers arrive.
  void note_burst_sent(Instant now) { sends_much_until_ = now + kSendingRest; }

  // Notes that something came through memory: for a while all channels are polled seldom.
  void note_memory_active(Instant now) { memory_active_until_ = now + kMemoryRest; }
  // Returns whether no channel is due for that reason.
  bool rests_beside_memory(Instant now) const {
    return now < memory_active_until_ && now < quiet_due_;
  }

  // --- received packets that are left for the next turn

  bool has_deferred() const { return deferred_ != 0; }
  bool has_deferred(const Channel& channel) const { return (deferred_ & channel.mark()) != 0; }
  void set_deferred(const Channel& channel, bool some) {
    deferred_ = some ? deferred_ | channel.mark() : deferred_ & ~channel.mark();
  }

  // --- between turns

  // Makes the next turn poll all channels, whatever is quiet.
  void poll_all_next_turn() {
    memory_active_until_ = Instant::min();
    unattended_due_ = Instant::min();
  }
  // Makes the next turn due by then, since this one did not poll everything.
  void rest_until(Instant due) { resting_until_ = std::min(resting_until_, due); }
  Instant resting_until() const { return resting_until_; }

 private:
  // While another channel is busy, a quiet one is polled again after 1/kRestOfSilence of the time
  // it has been silent, within these bounds: so a packet there waits little compared to that time.
  // In turns with packets it is the greater bound.
  static constexpr int kRestOfSilence = 8;
  static constexpr Duration kRest = std::chrono::microseconds(4);
  static constexpr Duration kBusyRest = std::chrono::microseconds(32);
  // The same while much is sent: half of what a turn may send left at once, no longer ago than
  // this. A few such turns take as long.
  static constexpr Duration kSendingRest = std::chrono::microseconds(128);
  // The same for a NIC of last resort, beside others.
  static constexpr Duration kStreamRest = std::chrono::microseconds(256);
  // The same for addresses at which no peer has a rail.
  static constexpr Duration kUnattendedRest = std::chrono::microseconds(256);
  // For this long after something came through memory, channels are polled once in kBusyRest.
  static constexpr Duration kMemoryRest = std::chrono::microseconds(64);

  std::uint32_t with_quiet_channels(Instant now);
  std::uint32_t all_channels(Instant now);
  std::uint32_t beside_memory(Instant now);
  std::uint32_t channels_of(std::size_t slot) const;

  const NicTable& nics_;
  std::uint32_t active_ = 0;                 // those on which something came lately
  std::uint32_t attended_ = 0;               // all but those of unattended addresses,
  Instant unattended_due_ = Instant::max();  // when unattended ones are due; max: there are none
  std::uint32_t deferred_ = 0;               // those in which received packets wait
  std::size_t last_received_ = 0;            // packets, in the turn before
  Instant sends_much_until_{};               // much is being sent until then
  Instant memory_active_until_{};            // something came through memory lately
  Instant quiet_since_{};                    // when the last channel fell silent
  Instant quiet_polled_{};                   // when quiet channels were last polled
  Instant quiet_due_{};                      // when quiet channels of active NICs are due
  Instant idle_due_{};    // when channels of NICs that are quiet altogether are due
  Instant stream_due_{};  // when channels of a last resort are due
  Instant resting_until_ = Instant::max();
};

}  // namespace pullman::engine
