// Which channels are polled in a turn. To poll one costs a system call on kernel providers, and
// what comes meanwhile by another waits for it: a channel that is quiet while another is not is
// polled only once in a while. Knows channels by their masks in the row (nic_table.h), no packets.
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

  // --- which there are

  // The slot's channels are polled like others from now on. `attended`: peers are met there, or it
  // is the only address of its NIC; a caller at an address where none is can wait a moment.
  void add(std::size_t slot, bool attended);
  void attend(std::size_t slot);
  // Received packets that were left in the slot's channels are gone.
  void forget(std::size_t slot);

  // --- in a turn

  void begin_turn() { resting_until_ = Instant::max(); }
  // The channels to poll this turn: a bit for the place of each. A process that sleeps is woken by
  // any of them (nic::Port::wait_fd).
  std::uint32_t due(Instant now) {
    if (now >= unattended_due_) [[unlikely]]
      return all_channels(now);
    if (active_ == 0 || active_ == attended_) return attended_;
    return now < quiet_due_ ? active_ : with_quiet_channels(now);
  }
  void note_active(std::size_t place) { active_ |= std::uint32_t{1} << place; }
  // Nothing came by it, nor has for a while.
  void note_quiet(Instant now, const Channel& channel) {
    if ((active_ & channel.mark()) == 0) return;
    active_ &= ~channel.mark();
    quiet_since_ = now;
  }
  void end_turn(std::size_t received) { last_received_ = received; }
  // Much has left at once: what it is answered with is what to look for.
  void note_burst_sent(Instant now) { sends_much_until_ = now + kSendingRest; }

  // --- received packets that are left for the next turn

  bool has_deferred() const { return deferred_ != 0; }
  bool has_deferred(const Channel& channel) const { return (deferred_ & channel.mark()) != 0; }
  void set_deferred(const Channel& channel, bool some) {
    deferred_ = some ? deferred_ | channel.mark() : deferred_ & ~channel.mark();
  }

  // --- between turns

  // The program is about to block: the next turn polls all channels.
  void prepare_to_block() {
    if (attended_ != nics_.all_channels()) unattended_due_ = Instant::min();
  }
  // The next turn is due by then, since this one did not look at everything.
  void rest_until(Instant due) { resting_until_ = std::min(resting_until_, due); }
  Instant resting_until() const { return resting_until_; }

 private:
  // How long a quiet channel is not polled while another is busy: this part of its silence, so what
  // comes at last has waited for little beside that, within bounds. In turns that bring packets,
  // the greater of them.
  static constexpr int kRestOfSilence = 8;
  static constexpr Duration kRest = std::chrono::microseconds(4);
  static constexpr Duration kBusyRest = std::chrono::microseconds(32);
  // While much is sent: half of what a turn may send, at once and no longer ago than this. A few
  // such turns take as long.
  static constexpr Duration kSendingRest = std::chrono::microseconds(128);
  // The same for a NIC of last resort, beside others.
  static constexpr Duration kStreamRest = std::chrono::microseconds(256);
  // Of addresses at which no peer is met.
  static constexpr Duration kUnattendedRest = std::chrono::microseconds(256);

  std::uint32_t with_quiet_channels(Instant now);
  std::uint32_t all_channels(Instant now);
  std::uint32_t channels_of(std::size_t slot) const;

  const NicTable& nics_;
  std::uint32_t active_ = 0;                 // something came lately
  std::uint32_t attended_ = 0;               // all but those of unattended addresses,
  Instant unattended_due_ = Instant::max();  // when those are due; never: there is none
  std::uint32_t deferred_ = 0;               // received packets wait in it
  std::size_t last_received_ = 0;            // in the turn before
  Instant sends_much_until_{};               // unless as many leave again
  Instant quiet_since_{};                    // when the last channel fell silent
  Instant quiet_polled_{};                   // when quiet channels were polled,
  Instant quiet_due_{};                      // and are due again,
  Instant idle_due_{};                       // and those of NICs that are quiet altogether,
  Instant stream_due_{};                     // and those of a last resort
  Instant resting_until_ = Instant::max();
};

}  // namespace pullman::engine
