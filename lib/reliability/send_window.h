// The sending half's memory: which packets are in flight, by number.
//
// A ring of slots: one of its own, and larger ones, up to 4096, taken from a pool when packets
// beyond it are numbered and given back when nothing is in flight. Packet numbers are 64 bits and
// counted here; the ring's index is masked in one place. Checks packets in and out of the hotel, so
// that its guests are exactly the packets in flight. Does not know acks, losses or round-trip
// times.
#pragma once

#include <array>
#include <cstddef>

#include "base/check.h"
#include "base/sequence.h"
#include "base/time.h"
#include "channel/packet.h"
#include "reliability/hotel.h"
#include "reliability/window_rings.h"
#include "wire/header.h"

namespace pullman::reliability {

using channel::Packet;
using channel::PacketState;

class SendWindow {
 public:
  SendWindow(WindowRings& rings, Hotel<Packet>& hotel, PacketNumber first)
      : rings_(rings), hotel_(hotel), first_(first), next_(first), floor_(first) {}
  SendWindow(const SendWindow&) = delete;
  SendWindow& operator=(const SendWindow&) = delete;

  // Whether a packet can be numbered at all: 4096 is reorder space, not permission.
  bool has_space() const {
    if (next_ - floor_ < slots_) return true;
    return slots_ == kOwn ? rings_.available() : slots_ < wire::kWindow;
  }

  // Gives the packet the next number, never used before, and checks it in. There is has_space().
  void add(Instant now, Duration stay, Packet& packet) {
    add_at(now, Hotel<Packet>::floor_for(stay), packet);
  }
  // For many packets of one stay: `floor` is the hotel's for it.
  void add_at(Instant now, std::size_t floor, Packet& packet) {
    PULLMAN_DCHECK(has_space());
    if (next_ - floor_ == slots_) grow();
    packet.number = next_++;
    packet.sent_at = now;
    packet.state = PacketState::kInFlight;
    slot(packet.number) = &packet;
    ++in_flight_;
    hotel_.check_in_at(now, floor, packet);
  }

  // The packet in flight under this number; null if it is not in flight.
  Packet* find(PacketNumber number) {
    return number >= floor_ && number < next_ ? slot(number) : nullptr;
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
  std::size_t slots() const { return slots_; }

 private:
  Packet*& slot(PacketNumber number) { return ring_[number & (slots_ - 1)]; }

  static constexpr std::size_t kOwn = 1;

  // Every slot from floor to next has been written since the ring was taken; no other is read.
  void grow() {
    const WindowRings::Ring larger = rings_.take_beyond(slots_);
    for (PacketNumber n = floor_; n < next_; ++n) larger[n & (larger.size() - 1)] = slot(n);
    if (slots_ > kOwn) rings_.give_back({ring_, slots_});
    ring_ = larger.data();
    slots_ = static_cast<std::uint32_t>(larger.size());
  }
  void give_back_ring() {
    floor_ = next_;
    if (slots_ == kOwn) return;
    rings_.give_back({ring_, slots_});
    ring_ = own_.data();
    slots_ = kOwn;
  }

  WindowRings& rings_;
  Hotel<Packet>& hotel_;
  std::array<Packet*, kOwn> own_{};
  Packet** ring_ = own_.data();
  PacketNumber first_;
  PacketNumber next_;
  PacketNumber floor_;
  std::uint32_t in_flight_ = 0;
  std::uint32_t slots_ = kOwn;  // of the ring
};

}  // namespace pullman::reliability
