// The sending half's memory: which packets are in flight, by number.
//
// A ring of 4096 slots, taken from a pool while anything is in flight and given back after. Packet
// numbers are 64 bits and counted here; the ring's index is masked in one place. Checks packets in
// and out of the hotel, so that its guests are exactly the packets in flight. Does not know acks,
// losses or round-trip times.
#pragma once

#include <array>
#include <cstddef>

#include "base/check.h"
#include "base/pool.h"
#include "base/sequence.h"
#include "base/time.h"
#include "channel/packet.h"
#include "reliability/hotel.h"
#include "wire/header.h"

namespace pullman::reliability {

using channel::Packet;
using channel::PacketState;

struct WindowRing {
  std::array<Packet*, wire::kWindow> slots{};
};

class SendWindow {
 public:
  SendWindow(Pool<WindowRing>& rings, Hotel<Packet>& hotel, PacketNumber first)
      : rings_(rings), hotel_(hotel), first_(first), next_(first), floor_(first) {}
  SendWindow(const SendWindow&) = delete;
  SendWindow& operator=(const SendWindow&) = delete;

  // Whether a packet can be numbered at all: 4096 is reorder space, not permission.
  bool has_space() const {
    return in_flight_ == 0 ? rings_.in_use() < rings_.capacity() : next_ - floor_ < wire::kWindow;
  }

  // Gives the packet the next number, never used before, and checks it in. There is has_space().
  void add(Instant now, Duration stay, Packet& packet) {
    PULLMAN_DCHECK(has_space());
    if (ring_ == nullptr) take_ring();
    packet.number = next_++;
    packet.sent_at = now;
    packet.state = PacketState::kInFlight;
    slot(packet.number) = &packet;
    ++in_flight_;
    hotel_.check_in(now, stay, packet);
  }

  // The packet in flight under this number; null if it is not in flight.
  Packet* find(PacketNumber number) {
    return number >= floor_ && number < next_ && ring_ != nullptr ? slot(number) : nullptr;
  }

  // It was acked, judged lost, or abandoned.
  void remove(Packet& packet) {
    PULLMAN_DCHECK(packet.state == PacketState::kInFlight && slot(packet.number) == &packet);
    slot(packet.number) = nullptr;
    --in_flight_;
    if (packet.checked_in()) hotel_.check_out(packet);
    if (in_flight_ == 0) return give_back_ring();
    while (slot(floor_) == nullptr) ++floor_;
  }

  // It was evicted but stays in flight: another stay.
  void recheck_in(Instant now, Duration stay, Packet& packet) {
    hotel_.check_in(now, stay, packet);
  }

  std::uint32_t in_flight() const { return in_flight_; }
  PacketNumber next() const { return next_; }
  PacketNumber first() const { return first_; }
  // The lowest number in flight: everything below is settled (wire.md 3.3).
  PacketNumber floor() const { return floor_; }
  bool holds_ring() const { return ring_ != nullptr; }

 private:
  Packet*& slot(PacketNumber number) { return ring_->slots[number & (wire::kWindow - 1)]; }

  void take_ring() {
    ring_ = rings_.take();
    PULLMAN_CHECK(ring_ != nullptr);
    floor_ = next_;
  }
  void give_back_ring() {
    floor_ = next_;
    rings_.give_back(ring_);
    ring_ = nullptr;
  }

  Pool<WindowRing>& rings_;
  Hotel<Packet>& hotel_;
  WindowRing* ring_ = nullptr;  // all null when taken and when given back
  PacketNumber first_;
  PacketNumber next_;
  PacketNumber floor_;
  std::uint32_t in_flight_ = 0;
};

}  // namespace pullman::reliability
