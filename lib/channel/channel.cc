#include "channel/channel.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "channel/run.h"

namespace pullman::channel {

Channel::Channel(ChannelKind kind, std::unique_ptr<nic::Port> port, Protector* protector)
    : kind_(kind),
      port_(std::move(port)),
      sealing_(protector == nullptr ? nullptr : std::make_unique<Sealing>(*protector)),
      most_(port_->limits().packets_per_turn) {}

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
  const std::span<const nic::Outgoing> batch{outgoing_.data(), count_};
  std::size_t taken = 0;
  if (sealing_ == nullptr) [[likely]] {
    taken = port_->send(batch);
  } else {
    note_origins();
    taken = send_sealed(batch, sealing_->origins);
  }
  PULLMAN_DCHECK(taken <= count_);
  drop_first(taken);
  return taken != 0;
}

// Offers the batch and the packets in one call, so that they can make one burst.
std::size_t Channel::send_behind(std::span<const nic::Outgoing> packets,
                                 std::span<Run* const> runs) {
  PULLMAN_DCHECK(packets.size() <= room());
  std::copy(packets.begin(), packets.end(), outgoing_.begin() + count_);
  const std::span<const nic::Outgoing> batch{outgoing_.data(), count_ + packets.size()};
  std::size_t taken = 0;
  if (sealing_ == nullptr) [[likely]] {
    taken = port_->send(batch);
  } else {
    Origin* at = note_origins();
    for (const Run* run : runs) {
      Origin chunk = origin_of(*run);
      for (std::uint32_t i = 0; i < run->count; ++i, ++chunk.number) *at++ = chunk;
    }
    taken = send_sealed(batch, sealing_->origins);
  }
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

// Notes the origins of the packets in the batch; returns the place behind them.
Origin* Channel::note_origins() {
  return std::transform(packets_.data(), packets_.data() + count_, sealing_->origins.data(),
                        [](const Packet* packet) { return origin_of(*packet); });
}

bool Channel::send_unremembered(std::span<const std::byte> packet, nic::Destination to,
                                const Origin& origin) {
  const nic::Outgoing one{packet, {}, to};
  return sealing_ == nullptr ? port_->send({&one, 1}) == 1 : seal_and_send(one, origin);
}

// Seals packets and offers them, as many at a time as there is room for. Returns how many the port
// took. What it did not take has not left, and is sealed again when it is offered again.
std::size_t Channel::send_sealed(std::span<const nic::Outgoing> packets,
                                 std::span<const Origin> origins) {
  Protector& protector = sealing_->protector;
  const std::span<std::byte> room = protector.room();
  std::size_t sent = 0;
  while (sent < packets.size()) {
    std::size_t count = 0;
    for (std::size_t used = 0; sent + count < packets.size(); ++count) {
      const nic::Outgoing& packet = packets[sent + count];
      const std::size_t most =
          packet.head.size() + packet.payload.size() + wire::trailer_bytes(packet.head.front());
      if (used + most > room.size()) break;
      std::byte* const out = room.data() + used;
      used += protector.seal(origins[sent + count], packet.head, packet.payload, out);
      sealing_->packets[count] = {{out, room.data() + used}, {}, packet.to};
    }
    const std::size_t taken = port_->send({sealing_->packets.data(), count});
    sent += taken;
    if (taken < count) break;
  }
  return sent;
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
