#include "engine/nics/channel_poller.h"

#include <algorithm>

namespace pullman::engine {
namespace {

constexpr std::size_t kRow = NicTable::kRow;

}  // namespace

std::uint32_t ChannelPoller::channels_of(std::size_t slot) const {
  return nics_.channel(slot, ChannelKind::kCommand).mark() |
         nics_.channel(slot, ChannelKind::kData).mark();
}

void ChannelPoller::add(std::size_t slot, bool attended) {
  active_ |= channels_of(slot);
  attended_ |= channels_of(slot);
  if (attended) return;
  active_ &= ~channels_of(slot);
  attended_ &= ~channels_of(slot);
  unattended_due_ = Instant::min();
}

void ChannelPoller::attend(std::size_t slot) {
  attended_ |= channels_of(slot);
  if (attended_ == nics_.all_channels()) unattended_due_ = Instant::max();
}

void ChannelPoller::forget(std::size_t slot) {
  deferred_ &= ~channels_of(slot);
}

// Some channels are quiet, and it is time to poll them: those of a NIC with an active channel, and
// the others less often. They wait longer while packets come or many leave.
std::uint32_t ChannelPoller::with_quiet_channels(Instant now) {
  if (now < sends_much_until_ && now < quiet_polled_ + kSendingRest) return active_;
  if (last_received_ != 0 && now < quiet_polled_ + kBusyRest) return active_;
  quiet_polled_ = now;
  quiet_due_ = now + std::clamp((now - quiet_since_) / kRestOfSilence, kRest, kBusyRest);
  constexpr std::uint32_t kCommands = (1 << kRow) - 1;
  const std::uint32_t nics = (active_ | active_ >> kRow) & kCommands;
  const std::uint32_t due = active_ | (nics_.all_channels() & (nics | nics << kRow));
  const std::uint32_t attended = due | attended_;
  if (due == attended || now < idle_due_) return due;
  idle_due_ = now + kBusyRest;
  if (nics_.stream_channels() == 0) return attended;
  if (now < stream_due_) return due | (attended & ~nics_.stream_channels());
  stream_due_ = now + kStreamRest;
  return attended;
}

std::uint32_t ChannelPoller::beside_memory(Instant now) {
  quiet_due_ = now + kBusyRest;
  return now >= unattended_due_ ? all_channels(now) : attended_;
}

std::uint32_t ChannelPoller::all_channels(Instant now) {
  const bool some_unattended = attended_ != nics_.all_channels();
  unattended_due_ = some_unattended ? now + kUnattendedRest : Instant::max();
  return nics_.all_channels();
}

}  // namespace pullman::engine
