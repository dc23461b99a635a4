#include "channel/channel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pullman::channel {

Channel::Channel(ChannelKind kind, std::unique_ptr<nic::Port> port)
    : kind_(kind), port_(std::move(port)), most_(port_->limits().packets_per_turn) {}

Channel::~Channel() {
  drop_first(count_);
}

void Channel::post(Packet& packet, nic::Destination to) {
  PULLMAN_DCHECK(count_ < kBatch && packet.state == PacketState::kInFlight);
  packet.in_channel = true;
  packets_[count_] = &packet;
  outgoing_[count_] = as_outgoing(packet, to);
  ++count_;
}

bool Channel::offer() {
  const std::size_t taken = port_->send({outgoing_.data(), count_});
  PULLMAN_DCHECK(taken <= count_);
  drop_first(taken);
  return taken != 0;
}

// Offers the batch and the packets in one call, so that they can make one burst.
std::size_t Channel::send_behind(std::span<const nic::Outgoing> packets) {
  PULLMAN_DCHECK(packets.size() <= room());
  std::copy(packets.begin(), packets.end(), outgoing_.begin() + count_);
  const std::size_t taken = port_->send({outgoing_.data(), count_ + packets.size()});
  const std::size_t waited = std::min(taken, count_);
  drop_first(waited);
  return taken - waited;
}

void Channel::drop_first(std::size_t taken) {
  for (std::size_t i = 0; i < taken; ++i) packets_[i]->in_channel = false;
  if (taken < count_) {
    std::move(packets_.begin() + taken, packets_.begin() + count_, packets_.begin());
    std::move(outgoing_.begin() + taken, outgoing_.begin() + count_, outgoing_.begin());
  }
  count_ -= taken;
}

bool Channel::send_unremembered(std::span<const std::byte> bytes, nic::Destination to) {
  const nic::Outgoing one{bytes, {}, to};
  return port_->send({&one, 1}) == 1;
}

void Channel::withdraw(Packet& packet) {
  const auto end = packets_.begin() + count_;
  const auto at = std::find(packets_.begin(), end, &packet);
  PULLMAN_CHECK(at != end);
  const auto index = at - packets_.begin();
  std::move(at + 1, end, at);
  std::move(outgoing_.begin() + index + 1, outgoing_.begin() + count_, outgoing_.begin() + index);
  --count_;
  packet.in_channel = false;
}

std::span<const nic::Incoming> Channel::receive() {
  if (kept_ != 0) [[unlikely]]
    return {incoming_.data() + received_ - std::exchange(kept_, 0), incoming_.data() + received_};
  const std::size_t got = port_->receive(incoming_, enough_);
  enough_ = got >= enough_ ? most_ : std::size_t{1};
  quiet_receives_ = got != 0 ? 0 : std::min(quiet_receives_ + 1, kQuietReceives);
  received_ = got;
  return {incoming_.data(), got};
}

}  // namespace pullman::channel
