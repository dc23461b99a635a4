// The sending half of a link: the packets in flight, by number.
//
// A ring of slots. The window owns a ring of one slot; it takes larger ones, of up to 4096, from a
// pool when more packets are numbered, and returns them when nothing is in flight. Packet numbers
// have 64 bits and are assigned here; the ring's index is masked in one place. Checks packets in
// and out of the hotel, so that its guests are exactly the packets in flight. A run (channel/run.h)
// occupies the slots of all its numbers but is one guest; find() of one of its numbers splits that
// chunk off. Does not know ACKs, losses or RTTs.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "base/check.h"
#include "base/sequence.h"
#include "base/time.h"
#include "channel/packet.h"
#include "channel/run.h"
#include "reliability/hotel.h"
#include "reliability/window_rings.h"
#include "wire/header.h"

namespace pullman::reliability {

using channel::Packet;
using channel::PacketState;
using channel::Run;

// The resources that the windows of one engine share. They outlive the windows.
struct WindowResources {
  Hotel<Packet>& hotel;
  WindowRings& rings;
  channel::PacketPool& packets;  // splits runs
};

class SendWindow {
 public:
  SendWindow(const WindowResources& shared, PacketNumber first)
      : shared_(shared), first_(first), next_(first), floor_(first) {}
  SendWindow(const SendWindow&) = delete;
  SendWindow& operator=(const SendWindow&) = delete;

  // Returns true if another packet can be numbered: 4096 numbers is the limit for reordering.
  // Whether a packet may be sent is Link::may_send().
  bool has_space() const {
    if (next_ - floor_ < slots_) [[likely]]
      return true;
    return may_grow();
  }
  // Returns how many packets can be numbered.
  std::uint32_t space() const {
    const std::size_t most = may_grow() ? wire::kWindow : slots_;
    return static_cast<std::uint32_t>(most - (next_ - floor_));
  }

  // Gives the packet the next number, never used before, and checks it in. Needs has_space().
  void add(Instant now, Duration stay, Packet& packet) {
    add_at(now, Hotel<Packet>::floor_for(stay), packet);
  }
  // The same for many packets of one stay: `floor` is the hotel's floor for it.
  void add_at(Instant now, std::size_t floor, Packet& packet) {
    PULLMAN_DCHECK(has_space());
    if (next_ - floor_ == slots_) grow();
    packet.number = next_++;
    packet.sent_at = now;
    packet.state = PacketState::kInFlight;
    slot(packet.number) = &packet;
    ++in_flight_;
    shared_.hotel.check_in_at(now, floor, packet);
  }
  // Numbers each chunk of a run, at most space(), and checks the run in.
  void add_run(Instant now, std::size_t floor, Run& run) {
    PULLMAN_DCHECK(run.count <= space());
    while (next_ - floor_ + run.count > slots_) grow();
    run.number = next_;
    run.sent_at = now;
    run.state = PacketState::kInFlight;
    for (std::uint32_t i = 0; i < run.count; ++i) slot(next_++) = &run;
    in_flight_ += run.count;
    shared_.hotel.check_in_at(now, floor, run);
  }

  // Returns the packet in flight with this number, or null. If a run has the number, that chunk is
  // split off first.
  Packet* find(PacketNumber number) {
    Packet* packet = holder(number);
    Run* run = channel::as_run(packet);
    return run == nullptr ? packet : split(*run, number);
  }
  // Returns the packet or run in flight with this number, or null.
  Packet* holder(PacketNumber number) const {
    return number >= floor_ && number < next_ ? ring_[number & (slots_ - 1)] : nullptr;
  }
  // Returns the run in flight with this number; null if a single packet has it, or none.
  Run* find_run(PacketNumber number) { return channel::as_run(holder(number)); }

  // Removes a packet that was acknowledged, declared lost, or abandoned.
  void remove(Packet& packet) {
    PULLMAN_DCHECK(packet.state == PacketState::kInFlight && slot(packet.number) == &packet);
    slot(packet.number) = nullptr;
    --in_flight_;
    if (packet.checked_in()) shared_.hotel.check_out(packet);
    settle();
  }
  // Removes chunks of a run that were acknowledged; checks the run out if they were its last.
  void remove_chunks(Run& run, std::uint64_t chunks) {
    for (std::uint64_t bits = chunks; bits != 0; bits &= bits - 1) {
      slot(run.number + static_cast<unsigned>(std::countr_zero(bits))) = nullptr;
    }
    in_flight_ -= static_cast<std::uint32_t>(std::popcount(chunks));
    shared_.packets.shed(run, chunks);
    if (run.left == 0 && run.checked_in()) shared_.hotel.check_out(run);
    settle();
  }

  // Restarts the timer of a packet that remains in flight.
  void recheck_in(Instant now, Duration stay, Packet& packet) {
    if (packet.checked_in()) shared_.hotel.check_out(packet);
    shared_.hotel.check_in(now, stay, packet);
  }

  std::uint32_t in_flight() const { return in_flight_; }
  PacketNumber next() const { return next_; }
  PacketNumber first() const { return first_; }
  // Returns the lowest number in flight. Everything below is settled (wire.md 3.3).
  PacketNumber floor() const { return floor_; }
  std::size_t slots() const { return slots_; }

 private:
  Packet*& slot(PacketNumber number) { return ring_[number & (slots_ - 1)]; }

  static constexpr std::size_t kOwn = 1;

  bool may_grow() const {
    return slots_ == kOwn ? shared_.rings.available() : slots_ < wire::kWindow;
  }

  void settle() {
    if (in_flight_ == 0) return give_back_ring();
    while (slot(floor_) == nullptr) ++floor_;
  }

  [[gnu::noinline]] Packet* split(Run& run, PacketNumber number) {
    Packet& packet = shared_.packets.split(run, static_cast<std::uint32_t>(number - run.number));
    slot(number) = &packet;
    if (run.checked_in()) shared_.hotel.check_in_beside(run, packet);
    if (run.left == 0) {
      if (run.checked_in()) shared_.hotel.check_out(run);
      shared_.packets.give_back(run);
    }
    return &packet;
  }

  // A new ring need not be cleared: only slots from floor to next are read, and each of those has
  // been written since the ring was taken.
  void grow() {
    const WindowRings::Ring larger = shared_.rings.take_beyond(slots_);
    for (PacketNumber n = floor_; n < next_; ++n) larger[n & (larger.size() - 1)] = slot(n);
    if (slots_ > kOwn) shared_.rings.give_back({ring_, slots_});
    ring_ = larger.data();
    slots_ = static_cast<std::uint32_t>(larger.size());
  }
  void give_back_ring() {
    floor_ = next_;
    if (slots_ == kOwn) return;
    shared_.rings.give_back({ring_, slots_});
    ring_ = own_.data();
    slots_ = kOwn;
  }

  const WindowResources& shared_;
  std::array<Packet*, kOwn> own_{};
  Packet** ring_ = own_.data();
  PacketNumber first_;
  PacketNumber next_;
  PacketNumber floor_;
  std::uint32_t in_flight_ = 0;
  std::uint32_t slots_ = kOwn;  // of the ring
};

}  // namespace pullman::reliability
