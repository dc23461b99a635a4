// The slots of all send windows of an engine: rings in four sizes, each allocated on first need.
//
// A link with more than one packet in flight holds one ring, the smallest that its window fits. So
// many peers that each send a little use little memory, and few ever use a full ring of 32 KiB.
// Does not know packet numbers.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "base/check.h"
#include "base/pool.h"
#include "channel/packet.h"
#include "wire/header.h"

namespace pullman::reliability {

class WindowRings {
 public:
  // A ring has a power of two of slots, which still contain what its last user left.
  using Ring = std::span<channel::Packet*>;

  // Each of `links` links may hold a ring. While it grows it holds two, of different sizes.
  explicit WindowRings(std::size_t links)
      : links_(links), tiny_(links), small_(links), middle_(links), full_(links) {}
  WindowRings(const WindowRings&) = delete;
  WindowRings& operator=(const WindowRings&) = delete;

  // Returns the smallest ring with more than `slots` slots; `slots` is less than kWindow.
  Ring take_beyond(std::size_t slots) {
    ++in_use_;
    if (slots < kTiny) return take(tiny_);
    if (slots < kSmall) return take(small_);
    if (slots < kMiddle) return take(middle_);
    PULLMAN_DCHECK(slots < wire::kWindow);
    return take(full_);
  }

  void give_back(Ring ring) {
    --in_use_;
    if (ring.size() == kTiny) return give_back(tiny_, ring);
    if (ring.size() == kSmall) return give_back(small_, ring);
    if (ring.size() == kMiddle) return give_back(middle_, ring);
    give_back(full_, ring);
  }

  // Returns true if another link may take a ring. It will also get every larger one it needs.
  bool available() const { return in_use_ < links_; }
  std::size_t in_use() const { return in_use_; }

 private:
  static constexpr std::size_t kTiny = 8;
  static constexpr std::size_t kSmall = 64;
  static constexpr std::size_t kMiddle = 512;

  template <std::size_t kSlots>
  struct Slots {
    std::array<channel::Packet*, kSlots> slots{};
  };

  template <std::size_t kSlots>
  static Ring take(Pool<Slots<kSlots>>& pool) {
    auto* taken = pool.take();
    PULLMAN_CHECK(taken != nullptr);
    return taken->slots;
  }
  template <std::size_t kSlots>
  static void give_back(Pool<Slots<kSlots>>& pool, Ring ring) {
    pool.give_back(reinterpret_cast<Slots<kSlots>*>(ring.data()));
  }

  std::size_t links_;
  std::size_t in_use_ = 0;
  Pool<Slots<kTiny>> tiny_;
  Pool<Slots<kSmall>> small_;
  Pool<Slots<kMiddle>> middle_;
  Pool<Slots<wire::kWindow>> full_;
};

}  // namespace pullman::reliability
